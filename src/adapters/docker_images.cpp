#include "adapters/docker_images.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "adapters/docker_errors.h"
#include "adapters/docker_pull.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using codec::Json;
using SteadyTime = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kImageListTimeout = std::chrono::minutes(2);
constexpr std::chrono::milliseconds kImageRemoveTimeout = std::chrono::minutes(3);

// Asks for a stop when nothing was heard for a while, or when somebody else asks for it.
class SilenceWatch {
 public:
  SilenceWatch(std::chrono::milliseconds limit, std::stop_token stop)
      : limit_(limit), on_stop_(std::move(stop), [this] { source_.request_stop(); }) {
    thread_ = std::jthread([this](std::stop_token done) { watch(done); });
  }

  std::stop_token token() const { return source_.get_token(); }
  void heard() {
    const std::lock_guard lock(mutex_);
    last_ = SteadyTime::now();
  }
  bool was_silent() const {
    const std::lock_guard lock(mutex_);
    return silent_;
  }

 private:
  void watch(std::stop_token done) {
    std::unique_lock lock(mutex_);
    while (!done.stop_requested()) {
      const auto until = last_ + limit_;
      if (SteadyTime::now() >= until) {
        silent_ = true;
        lock.unlock();
        source_.request_stop();
        return;
      }
      wake_.wait_until(lock, done, until, [] { return false; });
    }
  }

  const std::chrono::milliseconds limit_;
  std::stop_source source_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  SteadyTime::time_point last_ = SteadyTime::now();
  bool silent_ = false;
  std::stop_callback<std::function<void()>> on_stop_;
  std::jthread thread_;  // last: ends before what it uses
};

// "registry:5000/team/model:v1" with its slashes, as the engine's paths have image names.
std::string image_path(std::string_view image, std::string_view suffix) {
  std::string path = "/images/";
  while (true) {
    const std::size_t slash = image.find('/');
    path += percent_encode(image.substr(0, slash));
    if (slash == std::string_view::npos) break;
    path += '/';
    image.remove_prefix(slash + 1);
  }
  return path += suffix;
}

Status check_name(std::string_view doing, const std::string& image) {
  if (!image.empty()) return {};
  return fail(ErrorCode::kClient, fmt::format("{}: the image's name must not be empty", doing));
}

}  // namespace

DockerImages::DockerImages(std::shared_ptr<DockerClient> engine) : engine_(std::move(engine)) {}

Result<ports::ImageInfo> DockerImages::find(const std::string& image) {
  const std::string doing = fmt::format("inspect image {}", image);
  if (Status ok = check_name(doing, image); !ok) return fail(ok.error());
  const Result<Json> body =
      engine_->get_json({doing, "GET", image_path(image, "/json"), kDockerQueryTimeout});
  if (!body) return fail(body.error());
  ports::ImageInfo info;
  info.id = body->string_or("Id", "");
  if (info.id.empty()) return fail(ErrorCode::kProtocol, doing + ": the answer has no Id");
  if (info.id.find(':') == std::string::npos) info.id = "sha256:" + info.id;  // Podman's
  for (const Json& digest : body->array_or_empty("RepoDigests")) {
    if (digest.is_string()) info.repo_digests.push_back(digest.as_string());
  }
  info.size_bytes = body->integer_or("Size", 0);
  return info;
}

Status DockerImages::pull(const ports::PullRequest& request,
                          const std::function<void(const ports::PullProgress&)>& on_progress,
                          std::stop_token stop) {
  const std::string doing = fmt::format("pull {}", request.image);
  if (Status ok = check_name(doing, request.image); !ok) return ok;
  const PullTarget target = pull_target(request.image);
  DockerClient::Call call{doing, "POST",
                          fmt::format("/images/create?fromImage={}&tag={}",
                                      percent_encode(target.name), percent_encode(target.tag))};
  if (request.credentials) {
    call.headers.push_back({"X-Registry-Auth", registry_auth_header(*request.credentials)});
  }
  DockerPull pull;
  SilenceWatch silence(request.inactivity_timeout, stop);
  const Result<ports::HttpResponse> response = engine_->receive(
      call,
      [&](std::string_view piece) {
        silence.heard();
        if (pull.feed(piece) && on_progress) on_progress(pull.progress());
      },
      silence.token());
  if (silence.was_silent()) {
    return fail(ErrorCode::kTimeout, fmt::format("{}: the engine said nothing for {} s", doing,
                                                 request.inactivity_timeout.count() / 1000));
  }
  if (!response) return fail(response.error());
  if (response->status != 200) {
    base::Error error = docker_error(doing, *response);
    if (error.code == ErrorCode::kClient || error.code == ErrorCode::kNotFound) {
      error.code = classify_pull_error(error.message);
    }
    return fail(std::move(error));
  }
  if (pull.error()) {
    return fail(classify_pull_error(*pull.error()), fmt::format("{}: {}", doing, *pull.error()));
  }
  if (!pull.complete()) {
    return fail(ErrorCode::kUnavailable, doing + ": the engine broke off in the middle");
  }
  return {};
}

Status DockerImages::remove(const std::string& image) {
  const std::string doing = fmt::format("remove image {}", image);
  if (Status ok = check_name(doing, image); !ok) return ok;
  const Result<ports::HttpResponse> response =
      engine_->send({doing, "DELETE", image_path(image, ""), kImageRemoveTimeout});
  if (!response) return fail(response.error());
  if (response->status == 200 || response->status == 404) return {};
  base::Error error = docker_error(doing, *response);
  if (response->status == 409) error.code = ErrorCode::kConflict;
  return fail(std::move(error));
}

Result<std::set<std::string>> DockerImages::in_use() {
  const Result<Json> body = engine_->get_json(
      {"list all containers' images", "GET", "/containers/json?all=1", kImageListTimeout});
  if (!body) return fail(body.error());
  if (!body->is_array()) {
    return fail(ErrorCode::kProtocol, "list all containers' images: the answer is not an array");
  }
  std::set<std::string> ids;
  for (const Json& container : body->as_array()) {
    std::string id = container.string_or("ImageID", "");
    if (id.empty()) continue;
    ids.insert(id.find(':') == std::string::npos ? "sha256:" + id : id);
  }
  return ids;
}

}  // namespace cotenant::adapters
