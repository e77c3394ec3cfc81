// MPS control daemons in memory, for tests. Any thread.
//
// Fault knobs: starts and probes may fail with an error until told otherwise, daemons may die.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ports/mps_control.h"

namespace cotenant::fakes {

class FakeMpsControl final : public ports::MpsControl {
 public:
  enum class Call { kStart, kProbe, kStop };

  base::Status start(const std::string& gpu_uuid) override {
    const std::lock_guard lock(mutex_);
    if (auto error = enter(Call::kStart)) return base::fail(*error);
    running_.insert(gpu_uuid);
    return {};
  }
  base::Status probe(const std::string& gpu_uuid) override {
    const std::lock_guard lock(mutex_);
    if (auto error = enter(Call::kProbe)) return base::fail(*error);
    if (!running_.contains(gpu_uuid)) {
      return base::fail(base::ErrorCode::kUnavailable, "no daemon for " + gpu_uuid);
    }
    return {};
  }
  base::Status stop(const std::string& gpu_uuid) override {
    const std::lock_guard lock(mutex_);
    if (auto error = enter(Call::kStop)) return base::fail(*error);
    running_.erase(gpu_uuid);
    return {};
  }
  std::vector<std::string> running() override {
    const std::lock_guard lock(mutex_);
    return {running_.begin(), running_.end()};
  }
  std::string control_socket(const std::string& gpu_uuid) const override {
    return "/run/fake/mps/" + gpu_uuid + "/control";
  }

  void kill_daemon(const std::string& gpu_uuid) {
    const std::lock_guard lock(mutex_);
    running_.erase(gpu_uuid);
  }
  void add_daemon(const std::string& gpu_uuid) {
    const std::lock_guard lock(mutex_);
    running_.insert(gpu_uuid);
  }
  // Calls of this kind fail with it; nothing: they work.
  void set_error(Call call, std::optional<base::Error> error) {
    const std::lock_guard lock(mutex_);
    errors_.erase(call);
    if (error) errors_.emplace(call, std::move(*error));
  }
  int calls(Call call) const {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(call);
    return found == calls_.end() ? 0 : found->second;
  }

 private:
  std::optional<base::Error> enter(Call call) {
    ++calls_[call];
    const auto found = errors_.find(call);
    return found == errors_.end() ? std::nullopt : std::optional<base::Error>(found->second);
  }

  mutable std::mutex mutex_;
  std::set<std::string> running_;
  std::map<Call, base::Error> errors_;
  std::map<Call, int> calls_;
};

}  // namespace cotenant::fakes
