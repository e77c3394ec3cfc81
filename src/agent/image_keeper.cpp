#include "agent/image_keeper.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "agent/registry_config.h"
#include "base/log.h"
#include "base/private_file.h"
#include "codec/json.h"

namespace cotenant::agent {
namespace {

namespace log = base::log;
using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using codec::Json;
using SteadyClock = std::chrono::steady_clock;

constexpr std::int64_t kImagesFormat = 1;
constexpr std::int64_t kMib = 1024 * 1024;
constexpr std::chrono::seconds kProgressInterval{10};

std::int64_t seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - start).count();
}

}  // namespace

ImageKeeper::ImageKeeper(ImageOptions options, std::string data_dir, ports::ImageStore& store,
                         const base::Clock& clock)
    : options_(std::move(options)),
      path_(data_dir + "/" + kFileName),
      store_(store),
      clock_(clock) {
  load();
}

Status ImageKeeper::ensure(const std::string& image, const std::function<void()>& on_pull,
                           std::stop_token stop) {
  std::optional<ports::ImageInfo> cached;
  Result<ports::ImageInfo> found = store_.find(image);
  if (found) {
    cached = std::move(*found);
  } else if (found.error().code != ErrorCode::kNotFound) {
    return fail(found.error());
  }
  bool pulled_before = false;
  {
    const std::lock_guard lock(mutex_);
    pulled_before = pulled_.contains(image);
  }
  const PullDecision decision = decide_pull(options_.behavior, image, cached, pulled_before);
  if (decision == PullDecision::kUseCached) {
    note_used(image);
    return {};
  }
  if (on_pull) on_pull();
  Status pulled = pull(image, cached, stop);
  if (pulled || decision == PullDecision::kPull || stop.stop_requested()) return pulled;
  if (pulled.error().code == ErrorCode::kUnavailable) return pulled;  // the engine, not a registry
  log::warn("agent: {}; the image that is on the engine already is used", pulled.error().message);
  note_used(image);
  return {};
}

Status ImageKeeper::pull(const std::string& image, const std::optional<ports::ImageInfo>& cached,
                         std::stop_token stop) {
  ports::PullRequest request;
  request.image = image;
  std::string remark;
  if (Result<RegistryConfig> config = RegistryConfig::read(options_.registry_config)) {
    request.credentials = config->find(image);
    if (!request.credentials && !config->warnings().empty()) {
      remark = fmt::format(" ({}: {})", options_.registry_config, config->warnings().front());
    }
  } else {
    remark = fmt::format(" (without credentials: {})", config.error().message);
  }
  log::info("agent: pulling {}{}{}", image,
            request.credentials ? fmt::format(" as {}", request.credentials->username.empty()
                                                            ? "the token's owner"
                                                            : request.credentials->username)
                                : "",
            remark);
  const auto start = SteadyClock::now();
  auto next_line = start + kProgressInterval;
  Status pulled = store_.pull(
      request,
      [&](const ports::PullProgress& progress) {
        if (SteadyClock::now() < next_line) return;
        next_line = SteadyClock::now() + kProgressInterval;
        log::info("agent: pulling {}: {} of {} layers, {} of {} MiB, for {} s", image,
                  progress.layers_done, progress.layers, progress.bytes_done / kMib,
                  progress.bytes_total / kMib, seconds_since(start));
      },
      std::move(stop));
  if (!pulled) {
    return fail(pulled.error().code, pulled.error().message + remark);
  }
  const Result<ports::ImageInfo> info = store_.find(image);
  if (!info) return fail(info.error());
  const bool is_new = !cached || cached->id != info->id;
  log::info("agent: pulled {} in {} s: {}, {} MiB, {}", image, seconds_since(start),
            is_new ? "new" : "up to date", info->size_bytes / kMib,
            info->repo_digests.empty() ? info->id : info->repo_digests.front());
  note_pulled(image, info->id, is_new);
  return {};
}

void ImageKeeper::note_pulled(const std::string& image, const std::string& id, bool is_new) {
  const std::lock_guard lock(mutex_);
  const base::TimeMs now_ms = clock_.now_ms();
  const auto known = pulled_.find(image);
  if (known == pulled_.end() && !is_new) return;  // somebody else's, that was up to date
  if (known != pulled_.end() && known->second.id != id) {
    // It has lost its name to the new one, and is still ours.
    PulledImage nameless = known->second;
    nameless.name = nameless.id;
    pulled_.insert_or_assign(nameless.id, nameless);
  }
  if (known == pulled_.end() && pulled_.size() >= kPulledMax) return;
  pulled_.insert_or_assign(image, PulledImage{image, id, now_ms});
  save();
}

void ImageKeeper::note_used(const std::string& image) {
  const std::lock_guard lock(mutex_);
  const auto known = pulled_.find(image);
  if (known != pulled_.end()) known->second.last_used_at_ms = clock_.now_ms();
}

void ImageKeeper::clean_up(const std::set<std::string>& wanted) {
  if (!options_.cleanup.enabled || options_.behavior == PullBehavior::kPreferCached) return;
  const Result<std::set<std::string>> in_use = store_.in_use();
  if (!in_use) return log::warn("agent: image clean-up: {}", in_use.error().message);
  std::vector<PulledImage> due;
  {
    const std::lock_guard lock(mutex_);
    const base::TimeMs now_ms = clock_.now_ms();
    std::vector<PulledImage> all;
    for (auto& [name, image] : pulled_) {
      const bool used = in_use->contains(image.id) || wanted.contains(image.name);
      if (used || image.last_used_at_ms > now_ms) image.last_used_at_ms = now_ms;
      all.push_back(image);
    }
    due = images_to_remove(all, *in_use, wanted, options_.cleanup, now_ms);
  }
  for (const PulledImage& image : due) {
    // The name may mean another image by now, which is not ours.
    const Result<ports::ImageInfo> present = store_.find(image.name);
    if (present && present->id == image.id) {
      if (const Status removed = store_.remove(image.name); !removed) {
        log::warn("agent: image clean-up: {}", removed.error().message);
        continue;
      }
      log::info("agent: removed image {}, unused for a while", image.name);
    } else if (!present && present.error().code != ErrorCode::kNotFound) {
      log::warn("agent: image clean-up: {}", present.error().message);
      continue;
    }
    const std::lock_guard lock(mutex_);
    pulled_.erase(image.name);
  }
  const std::lock_guard lock(mutex_);
  save();
}

void ImageKeeper::load() {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return;
  std::ostringstream text;
  text << file.rdbuf();
  const Result<Json> json = Json::parse(text.str());
  if (!json || json->integer_or("format", 0) != kImagesFormat) {
    log::warn(
        "agent: {}: is damaged or another version's; the images that were pulled before are "
        "not cleaned up",
        path_);
    return;
  }
  for (const Json& entry : json->array_or_empty("images")) {
    PulledImage image{entry.string_or("name", ""), entry.string_or("id", ""),
                      entry.integer_or("lastUsedAt", 0)};
    if (image.name.empty() || image.id.empty() || pulled_.size() >= kPulledMax) continue;
    pulled_.insert_or_assign(image.name, image);
  }
}

void ImageKeeper::save() {
  Json images = Json::array();
  for (const auto& [name, image] : pulled_) {
    images.push(Json::object(
        {{"name", image.name}, {"id", image.id}, {"lastUsedAt", image.last_used_at_ms}}));
  }
  const Status saved = base::write_private_file(
      path_,
      Json::object({{"format", kImagesFormat}, {"images", std::move(images)}}).dump_pretty());
  if (!saved && !save_failed_) {
    log::warn("agent: {}; images pulled from now on may not be cleaned up after a restart",
              saved.error().message);
  }
  save_failed_ = !saved;
}

}  // namespace cotenant::agent
