// An engine's images in memory, for tests. Any thread. Every image is in a registry unless told
// otherwise; each pull gives an image the id "sha256:<name>#<version>".
//
// Knobs: the next pull fails; pulls are held up; an image is there already, or newer in the
// registry.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ports/image_store.h"

namespace cotenant::fakes {

class FakeImageStore final : public ports::ImageStore {
 public:
  base::Result<ports::ImageInfo> find(const std::string& image) override {
    const std::lock_guard lock(mutex_);
    if (away_) return base::fail(base::ErrorCode::kUnavailable, "the fake engine is away");
    const auto found = images_.find(image);
    if (found == images_.end()) {
      return base::fail(base::ErrorCode::kNotFound, "no such image: " + image);
    }
    return found->second;
  }

  base::Status pull(const ports::PullRequest& request,
                    const std::function<void(const ports::PullProgress&)>& on_progress,
                    std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    pulls_.push_back(request);
    wake_.notify_all();
    if (!wake_.wait(lock, stop, [&] { return !held_; })) {
      return base::fail(base::ErrorCode::kUnavailable, "stopped");
    }
    if (!failures_.empty()) {
      base::Error error = failures_.front();
      failures_.pop_front();
      return base::fail(std::move(error));
    }
    const ports::ImageInfo fetched = make(request.image);
    const auto known = images_.find(request.image);
    if (known != images_.end() && known->second.id != fetched.id) {
      const ports::ImageInfo nameless = known->second;  // the engine keeps it, by its id only
      images_[nameless.id] = nameless;
    }
    images_[request.image] = fetched;
    lock.unlock();
    if (on_progress) on_progress({1, 1, 10, 10});
    return {};
  }

  base::Status remove(const std::string& image) override {
    const std::lock_guard lock(mutex_);
    removed_.push_back(image);
    images_.erase(image);
    return {};
  }

  base::Result<std::set<std::string>> in_use() override {
    const std::lock_guard lock(mutex_);
    if (away_) return base::fail(base::ErrorCode::kUnavailable, "the fake engine is away");
    return in_use_;
  }

  void fail_next_pull(base::Error error) {
    const std::lock_guard lock(mutex_);
    failures_.push_back(std::move(error));
  }
  void hold_pulls(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    wake_.notify_all();
  }
  void set_away(bool away) {
    const std::lock_guard lock(mutex_);
    away_ = away;
  }
  void release_version(int version) {  // what the registry has from now on
    const std::lock_guard lock(mutex_);
    version_ = version;
  }
  void add(const std::string& image, bool from_registry) {
    const std::lock_guard lock(mutex_);
    images_[image] = make(image);
    if (!from_registry) images_[image].repo_digests.clear();
  }
  void set_in_use(std::set<std::string> ids) {
    const std::lock_guard lock(mutex_);
    in_use_ = std::move(ids);
  }
  std::vector<ports::PullRequest> pulls() const {
    const std::lock_guard lock(mutex_);
    return pulls_;
  }
  std::vector<std::string> removed() const {
    const std::lock_guard lock(mutex_);
    return removed_;
  }

 private:
  ports::ImageInfo make(const std::string& image) const {
    const std::string version = image + "#" + std::to_string(version_);
    return {"sha256:" + version, {image + "@sha256:registry-" + version}, 1024};
  }

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::map<std::string, ports::ImageInfo> images_;
  std::deque<base::Error> failures_;
  std::vector<ports::PullRequest> pulls_;
  std::vector<std::string> removed_;
  std::set<std::string> in_use_;
  int version_ = 1;
  bool held_ = false;
  bool away_ = false;
};

}  // namespace cotenant::fakes
