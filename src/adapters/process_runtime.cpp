#include "adapters/process_runtime.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "adapters/names_in_folder.h"
#include "adapters/process_lock.h"
#include "adapters/process_plan.h"
#include "adapters/process_shim.h"
#include "adapters/process_tag.h"
#include "adapters/process_watch.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/private_file.h"
#include "base/prng.h"
#include "base/process_identity.h"
#include "base/unique_fd.h"

namespace cotenant::adapters {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using base::UniqueFd;
using ports::ContainerPhase;
using ports::ContainerState;
using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

// From SIGKILL to the end; longer means that the kernel does not let it go (a hanging driver).
constexpr seconds kKillLimit{30};
// From a shim's last word to its end.
constexpr seconds kLeaveLimit{5};
constexpr milliseconds kLeavePoll{2};
// What can be read again (base/private_file.h).
constexpr std::size_t kConfigBytesMax = std::size_t{1024} * 1024;
constexpr int kKilled = 128 + SIGKILL;
constexpr int kMachineWentDown = 255;
// Folders that are being made and removed; no id looks like them.
constexpr const char* kNewPrefix = ".new-";
constexpr const char* kGonePrefix = ".gone-";

std::string new_process_id() {
  base::Prng prng(base::random_seed());
  std::string id;
  while (!is_process_id(id)) id += fmt::format("{:016x}", prng.next());
  return id;
}

base::Error no_such_process(const std::string& id) {
  return {ErrorCode::kNotFound, fmt::format("No such container: {}", id)};
}

base::Error being_started(const std::string& id) {
  return {ErrorCode::kTimeout, fmt::format("container {}: is being started", id)};
}

base::Error folder_error(const std::string& path, const std::error_code& error) {
  return {ErrorCode::kIo, fmt::format("process runtime: {}: {}", path, error.message())};
}

// True when it is gone.
bool wait_for_shim(int process, milliseconds limit) {
  const auto deadline = SteadyClock::now() + limit;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now()).count();
    pollfd polled{process, POLLIN, 0};
    const int ready =
        ::poll(&polled, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 3600 * 1000)));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// The lock, also of a container whose shim has just left word of its end and is about to let go of it.
Result<UniqueFd> take_lock_of_ended(const std::string& folder) {
  const auto deadline = SteadyClock::now() + kLeaveLimit;
  while (true) {
    Result<UniqueFd> lock = take_process_lock(folder);
    const bool leaving =
        !lock && lock.error().code == ErrorCode::kConflict && read_process_exit(folder);
    if (!leaving || SteadyClock::now() >= deadline) return lock;
    std::this_thread::sleep_for(kLeavePoll);
  }
}

void signal_shim(int process, int signal) {
  ::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0);
}

}  // namespace

Result<std::unique_ptr<ProcessRuntime>> ProcessRuntime::open(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) fs::permissions(folder, fs::perms::owner_all, error);
  if (error) return fail(folder_error(folder, error));
  std::unique_ptr<ProcessRuntime> runtime(new ProcessRuntime(folder));
  // What a process that was killed has left half made, or half removed.
  for (const std::string& name : names_in_folder(folder)) {
    if (!name.starts_with(kNewPrefix) && !name.starts_with(kGonePrefix)) continue;
    fs::remove_all(folder + "/" + name, error);
  }
  return runtime;
}

Result<ports::EngineInfo> ProcessRuntime::info() {
  ports::EngineInfo info;
  utsname system{};
  info.name = "process runtime";
  info.version = ::uname(&system) == 0 ? fmt::format("{} {}", system.sysname, system.release) : "";
  info.has_isolation = false;
  return info;
}

std::vector<std::string> ProcessRuntime::ids() const {
  std::vector<std::string> found = names_in_folder(folder_);
  std::erase_if(found, [](const std::string& name) { return !is_process_id(name); });
  std::sort(found.begin(), found.end());
  return found;
}

Result<ProcessRuntime::Config> ProcessRuntime::config(const std::string& id) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = configs_.find(id); known != configs_.end()) return known->second;
  }
  if (!is_process_id(id)) return fail(no_such_process(id));
  const std::string path = folder_of(id) + "/config.json";
  const auto text = base::read_private_file(path);
  if (!text) return fail(text.error());
  if (!*text) return fail(no_such_process(id));
  Result<ProcessConfig> decoded = decode_process_config(**text);
  if (!decoded) {
    return fail(ErrorCode::kProtocol, fmt::format("{}: {}", path, decoded.error().message));
  }
  Config made = std::make_shared<const ProcessConfig>(std::move(*decoded));
  const std::lock_guard lock(mutex_);
  configs_[id] = made;
  return made;
}

Result<std::vector<ContainerState>> ProcessRuntime::list(const std::string& label,
                                                         const std::string& value) {
  std::error_code error;
  if (!fs::is_directory(folder_, error)) {
    return fail(ErrorCode::kUnavailable, fmt::format("process runtime: {} is not there", folder_));
  }
  std::vector<ContainerState> states;
  for (const std::string& id : ids()) {
    const Result<Config> known = config(id);
    if (!known) {
      // One folder that cannot be read must not hide the others; nor is it anybody's.
      if (known.error().code != ErrorCode::kNotFound) base::log::warn("{}", known.error().message);
      continue;
    }
    const auto found = (*known)->labels.find(label);
    if (found == (*known)->labels.end() || found->second != value) continue;
    Result<std::optional<ContainerState>> state = inspect(id);
    if (!state && state.error().code == ErrorCode::kNotFound) continue;  // removed since
    if (!state) return fail(state.error());
    if (*state) states.push_back(std::move(**state));
  }
  return states;
}

Result<std::optional<ContainerState>> ProcessRuntime::inspect(const std::string& id) {
  const Result<Config> known = config(id);
  if (!known) return fail(known.error());
  const std::string folder = folder_of(id);
  const Result<bool> locked = is_process_locked(folder);
  if (!locked && locked.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!locked) return fail(locked.error());
  const auto running = read_process_state(folder);
  auto ended = read_process_exit(folder);
  if (!*locked && running && !ended) {
    bury(id, *running);
    ended = read_process_exit(folder);
  }
  ContainerState state;
  state.id = id;
  state.name = (*known)->name;
  state.image = (*known)->image;
  state.labels = (*known)->labels;
  state.started_at_ms = running ? running->started_at_ms : 0;
  if (ended) {
    state.phase = ContainerPhase::kStopped;
    state.exit_code = ended->code;
    state.error = ended->error;
    state.finished_at_ms = ended->finished_at_ms;
  } else if (*locked && running) {
    state.phase = ContainerPhase::kRunning;
    state.bindings = (*known)->bindings;
  } else if (!is_process_locked(folder)) {
    return std::nullopt;  // removed since: that is why it has no records
  }
  return state;
}

void ProcessRuntime::bury(const std::string& id, const ProcessStateRecord& state) {
  const std::string folder = folder_of(id);
  const Result<UniqueFd> lock = take_process_lock(folder);
  // Started again, or removed, or it has just left word.
  if (!lock || read_process_exit(folder) || !read_process_state(folder)) return;
  const bool same_boot = state.boot_id == base::current_boot_id();
  // Its program has died with it (PR_SET_PDEATHSIG); what that had started, perhaps not.
  if (same_boot) kill_tagged_processes(id);
  const ProcessExitRecord record{same_boot ? kKilled : kMachineWentDown, "",
                                 base::SystemClock().now_ms()};
  base::log::warn("process runtime: container {}: {}", id,
                  same_boot ? "its shim was killed, and its processes with it"
                            : "it ended when the machine went down");
  if (const Status written = write_process_exit(folder, record); !written) {
    base::log::warn("{}", written.error().message);
  }
}

Result<std::string> ProcessRuntime::create(const ports::ContainerSpec& spec) {
  Result<ProcessConfig> plan = plan_process(spec);
  if (!plan) return fail(plan.error());
  const std::lock_guard lock(create_mutex_);
  for (const std::string& id : ids()) {
    const Result<Config> known = config(id);
    if (known && (*known)->name == spec.name) {
      return fail(ErrorCode::kConflict,
                  fmt::format("the container name '{}' is taken by {}", spec.name, id));
    }
  }
  std::error_code error;
  for (const ports::Mount& mount : spec.mounts) {
    if (!mount.make_source) continue;
    fs::create_directories(mount.source, error);
    if (error) {
      return fail(ErrorCode::kClient,
                  fmt::format("volumes: host.sourcePath '{}': {}", mount.source, error.message()));
    }
  }
  std::string id = new_process_id();
  // Also instead of the definition's: by another's id, this one's processes would end with that one.
  std::erase_if(plan->environment, [](const auto& each) { return each.name == kProcessTag; });
  plan->environment.push_back({kProcessTag, id});
  const std::string text = encode_process_config(*plan);
  if (text.size() > kConfigBytesMax) {
    return fail(ErrorCode::kClient,
                fmt::format("command and environment together take {} bytes; at "
                            "most {} are allowed",
                            text.size(), kConfigBytesMax));
  }
  const std::string aside = folder_ + "/" + kNewPrefix + id;
  fs::create_directory(aside, error);
  if (!error) fs::permissions(aside, fs::perms::owner_all, error);
  if (error) return fail(folder_error(aside, error));
  Status made = make_process_lock(aside);
  if (made) made = base::write_private_file(aside + "/config.json", text);
  if (made) fs::rename(aside, folder_of(id), error);
  if (made && !error) return id;
  if (made) made = fail(folder_error(aside, error));
  fs::remove_all(aside, error);
  return fail(made.error());
}

Status ProcessRuntime::start(const std::string& id) {
  const Result<Config> known = config(id);
  if (!known) return fail(known.error());
  const std::string folder = folder_of(id);
  const Result<UniqueFd> lock = take_lock_of_ended(folder);
  if (!lock && lock.error().code == ErrorCode::kConflict) {
    const Result<UniqueFd> shim = open_running_shim(folder);
    if (shim && *shim) return {};
    return fail(being_started(id));
  }
  if (!lock) {
    return fail(lock.error().code == ErrorCode::kNotFound ? no_such_process(id) : lock.error());
  }
  const Status started = start_process(**known, folder, *lock);
  if (started || started.error().code != ErrorCode::kClient) return started;
  return fail(ErrorCode::kClient,
              fmt::format("{} (the process runtime runs what is on this machine, not on an image)",
                          started.error().message));
}

Status ProcessRuntime::stop(const std::string& id, std::int64_t timeout_s) {
  if (timeout_s < 0 || timeout_s > base::limits::kStopTimeoutSecondsMax) {
    return fail(ErrorCode::kClient,
                fmt::format("stop container {}: a stop timeout of {} s is not in 0..{}", id,
                            timeout_s, base::limits::kStopTimeoutSecondsMax));
  }
  const Result<Config> known = config(id);
  if (!known) return fail(known.error());
  const std::string folder = folder_of(id);
  const Result<UniqueFd> shim = open_running_shim(folder);
  if (!shim) {
    return fail(shim.error().code == ErrorCode::kNotFound ? no_such_process(id) : shim.error());
  }
  if (!*shim) {
    const bool is_over = !is_process_locked(folder).value_or(false);
    return is_over ? Status{} : fail(being_started(id));
  }
  // What programs beside it (exec) have started is nobody's child.
  const auto ended = [&](seconds limit) {
    if (!wait_for_shim(shim->get(), limit)) return false;
    kill_tagged_processes(id);
    return true;
  };
  signal_shim(shim->get(), SIGTERM);
  if (ended(seconds(timeout_s))) return {};
  signal_shim(shim->get(), SIGUSR1);
  if (ended(kKillLimit)) return {};
  return fail(ErrorCode::kTimeout,
              fmt::format("stop container {}: its processes are still there {} s after SIGKILL", id,
                          kKillLimit.count()));
}

Status ProcessRuntime::remove(const std::string& id) {
  const std::string folder = folder_of(id);
  if (!is_process_id(id)) return {};
  const Result<UniqueFd> lock = take_lock_of_ended(folder);
  if (!lock && lock.error().code == ErrorCode::kNotFound) return {};
  if (!lock && lock.error().code == ErrorCode::kConflict) {
    return fail(ErrorCode::kConflict, fmt::format("container {} is running", id));
  }
  if (!lock) return fail(lock.error());
  kill_tagged_processes(id);
  const std::string aside = folder_ + "/" + kGonePrefix + id;
  std::error_code error;
  fs::rename(folder, aside, error);
  if (error) return fail(folder_error(folder, error));
  {
    const std::lock_guard guard(mutex_);
    configs_.erase(id);
  }
  fs::remove_all(aside, error);  // what stays, the next open() removes
  return {};
}

Status ProcessRuntime::import_image(const std::string& image, const std::string&,
                                    const std::string&) {
  return fail(ErrorCode::kClient,
              fmt::format("image {}: the process runtime has no images", image));
}

Status ProcessRuntime::watch(const std::string&, const std::string&,
                             const std::function<void()>& on_change, std::stop_token stop) {
  return watch_process_folder(folder_, on_change, std::move(stop));
}

}  // namespace cotenant::adapters
