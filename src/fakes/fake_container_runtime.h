// A container engine in memory, for tests. Any thread. Containers run until exit_container() or
// stop().
//
// Fault knobs: the engine may be away (every call is kUnavailable, watches end), the next call of a
// kind may fail, the answer of the next create may be lost, calls of a kind may be held up.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ports/container_runtime.h"

namespace cotenant::fakes {

class FakeContainerRuntime final : public ports::ContainerRuntime {
 public:
  enum class Call { kInfo, kList, kCreate, kStart, kStop, kRemove, kWatch, kImport };

  explicit FakeContainerRuntime(ports::EngineInfo info = default_info());
  static ports::EngineInfo default_info();  // 4 cores, 8192 MiB, a bridge

  base::Result<ports::EngineInfo> info() override;
  base::Result<std::vector<ports::ContainerState>> list(const std::string& label,
                                                        const std::string& value) override;
  base::Result<std::string> create(const ports::ContainerSpec& spec) override;
  base::Status start(const std::string& id) override;
  base::Status stop(const std::string& id, std::int64_t timeout_s) override;
  base::Status remove(const std::string& id) override;
  base::Status import_image(const std::string& image, const std::string& tar,
                            const std::string& program) override;
  // Containers of the fake have no volumes.
  base::Status remove_unused_volumes(const std::string&, const std::string&) override { return {}; }
  base::Status watch(const std::string& label, const std::string& value,
                     const std::function<void()>& on_change, std::stop_token stop) override;

  // Images that create() finds; "*" (the default) is any.
  void set_images(std::set<std::string> images);
  void exit_container(const std::string& id, int exit_code, bool oom_killed = false);
  void set_health(const std::string& id, core::HealthStatus health);
  void erase_container(const std::string& id);  // as `docker rm --force` by somebody else
  void add_container(ports::ContainerState state);
  void set_away(bool away);
  // Wall time, for the containers' times; it goes on by itself too.
  void set_clock(base::TimeMs now_ms);
  void fail_next(Call call, base::Error error);
  void lose_next_create_answer();  // the container is made; the answer is kTimeout
  void hold(Call call);            // calls of this kind wait until released
  void release(Call call);

  std::vector<ports::ContainerState> containers() const;
  std::optional<ports::ContainerState> find_named(const std::string& part_of_name) const;
  std::optional<ports::ContainerSpec> spec_of(const std::string& id) const;
  int calls(Call call) const;
  int starts_of(const std::string& id) const;
  std::optional<std::int64_t> stop_timeout_of(const std::string& id) const;

 private:
  struct Entry {
    ports::ContainerState state;
    ports::ContainerSpec spec;
    int starts = 0;
    std::optional<std::int64_t> stop_timeout_s;
  };

  // Counts the call, waits while it is held, and gives the failure it is to have.
  std::optional<base::Error> enter(Call call, std::unique_lock<std::mutex>& lock);
  void changed();
  base::Error no_such(const std::string& id) const;

  const ports::EngineInfo info_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::map<std::string, Entry> entries_;
  std::set<std::string> images_{"*"};
  std::map<Call, std::deque<base::Error>> failures_;
  std::map<Call, int> calls_;
  std::set<Call> held_;
  bool away_ = false;
  bool lose_create_ = false;
  std::uint64_t generation_ = 0;
  std::uint64_t next_id_ = 1;
  base::TimeMs clock_ms_ = 1'700'000'000'000;
};

}  // namespace cotenant::fakes
