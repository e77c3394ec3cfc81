// `down`: everything that cotenant left on this machine with one data folder, in the order in which
// nothing comes back: first who would restart things, then containers, their daemons, the driver,
// the folders.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "agent/agent_state.h"
#include "agent/labels.h"
#include "base/unique_fd.h"
#include "cli/exit_code.h"
#include "cli/node_verbs.h"
#include "cli/pid_file.h"
#include "cli/simulated_driver.h"

namespace cotenant::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kContainerStopSeconds = 10;
constexpr std::size_t kStopsAtOnce = 16;
constexpr std::chrono::seconds kLockWait{5};
constexpr std::chrono::milliseconds kLockPoll{20};
constexpr std::array kDataFiles = {"cotenant.db", "cotenant.db-wal", "cotenant.db-shm",
                                   "cotenant.db.lock"};

struct RecordedRole {
  Role role = Role::kUp;
  Installation installation;
};

base::Result<std::vector<RecordedRole>> read_roles(const std::string& data_dir,
                                                   const DownOptions& options) {
  std::vector<RecordedRole> roles;
  for (const Role role : kRoles) {
    auto recorded = read_node_file(data_dir, role);
    if (!recorded) return base::fail(recorded.error());
    if (!*recorded) continue;
    if (!options.docker_host.empty()) (*recorded)->docker_host = options.docker_host;
    roles.push_back({role, std::move(**recorded)});
  }
  return roles;
}

base::Status end_processes(const RecordedRole& recorded) {
  const auto process = read_pid_file(pid_file_path(recorded.installation, recorded.role));
  if (!process) return {};
  const std::string what = fmt::format("cotenant {}", role_name(recorded.role));
  if (auto status = end_recorded_process(*process, what); !status) return status;
  fmt::print("ended {}, pid {}\n", what, process->pid);
  return {};
}

// Whoever runs with this data folder in a way that left no record still holds its lock.
base::Status check_unlocked(const std::string& data_dir) {
  for (const char* name : {"cotenant.db.lock", "agent.lock"}) {
    const std::string path = data_dir + "/" + name;
    const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    // One that was killed a moment ago holds its locks until the last of its threads is gone.
    const auto until = std::chrono::steady_clock::now() + kLockWait;
    bool held = file && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
    while (held && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kLockPoll);
      held = ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
    }
    if (held) {
      return base::fail(base::ErrorCode::kConflict,
                        fmt::format("{}: is held by a running cotenant; end that first", path));
    }
  }
  return {};
}

// Without a record: what still runs in the run folder cannot be cleared safely, and is not forgotten.
base::Status check_nothing_runs(const std::string& run_dir) {
  for (const char* name : {"up", "server", "agent", "gpusimd"}) {
    const auto process = read_pid_file(fmt::format("{}/{}.pid", run_dir, name));
    if (!process) continue;
    return base::fail(
        base::ErrorCode::kConflict,
        fmt::format("{}: {} runs (pid {}), but the data folder's records are gone; start "
                    "cotenant again with the options it had, then `cotenant down`",
                    run_dir, name, process->pid));
  }
  return {};
}

base::Status remove_container(ports::ContainerRuntime& runtime,
                              const ports::ContainerState& container) {
  if (container.phase == ports::ContainerPhase::kRunning) {
    auto status = runtime.stop(container.id, kContainerStopSeconds);
    if (!status && status.error().code != base::ErrorCode::kNotFound) return status;
  }
  return runtime.remove(container.id);
}

// A container takes as long to stop as it likes, up to its time-out; the others do not wait for it.
// What cannot be removed is left in `containers`.
base::Status remove_at_once(ports::ContainerRuntime& runtime,
                            std::vector<ports::ContainerState>& containers) {
  std::mutex mutex;
  std::vector<ports::ContainerState> left;
  std::size_t next = 0;
  base::Status outcome;
  const auto work = [&] {
    while (true) {
      std::unique_lock lock(mutex);
      if (next >= containers.size()) return;
      const ports::ContainerState& container = containers[next++];
      lock.unlock();
      const base::Status removed = remove_container(runtime, container);
      lock.lock();
      if (removed) fmt::print("removed container {}\n", container.name);
      if (!removed) left.push_back(container);
      if (!removed && outcome) outcome = removed;
    }
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(kStopsAtOnce, containers.size()); ++i) {
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // fewer do it as well
    }
  }
  work();
  helpers.clear();
  containers = std::move(left);
  return outcome;
}

base::Status remove_containers(const Installation& installation, const std::string& instance_id,
                               const Composition& composition) {
  const auto engine_error = [&](const base::Error& error) {
    if (installation.runtime == kProcessRuntime) return base::fail(error);
    return base::fail(error.code, fmt::format("{} (engine {}; --docker-host names another)",
                                              error.message, installation.docker_host));
  };
  auto engine = make_engine(installation, composition);
  if (!engine) return engine_error(engine.error());
  auto containers = engine->runtime->list(agent::kInstanceLabel, instance_id);
  if (!containers) return engine_error(containers.error());
  // The agent's own rule: a container without the other labels is not ours.
  std::erase_if(*containers, [](const ports::ContainerState& container) {
    return container.labels.count(agent::kContainerLabel) == 0;
  });
  base::Status removed = remove_at_once(*engine->runtime, *containers);
  // Podman keeps a container whose network others share until those are gone; they are by now.
  if (!removed) removed = remove_at_once(*engine->runtime, *containers);
  if (!removed) return engine_error(removed.error());
  // The volumes that tasks had for themselves.
  auto swept = engine->runtime->remove_unused_volumes(agent::kInstanceLabel, instance_id);
  if (!swept) return engine_error(swept.error());
  return {};
}

base::Status end_daemons(const Installation& installation, const Composition& composition) {
  const auto mps = composition.make_mps_control(mps_options(installation));
  for (const std::string& gpu_uuid : mps->running()) {
    if (auto status = mps->stop(gpu_uuid); !status) return status;
    fmt::print("ended the MPS daemon of {}\n", gpu_uuid);
  }
  return {};
}

base::Status end_agent_half(const RecordedRole& recorded, const Composition& composition) {
  if (recorded.role == Role::kServer) return {};
  const Installation& installation = recorded.installation;
  auto instance_id = agent::AgentState::read_instance_id(installation.data_dir);
  if (!instance_id) return base::fail(instance_id.error());
  if (*instance_id) {
    if (auto status = remove_containers(installation, **instance_id, composition); !status) {
      return status;
    }
  }
  if (auto status = end_daemons(installation, composition); !status) return status;
  return end_simulated_driver(installation);
}

// A folder that holds something else than ours stays, with that in it.
base::Status remove_if_empty(const std::string& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return {};
  if (fs::remove(folder, error)) {
    fmt::print("removed {}\n", folder);
    return {};
  }
  return base::fail(base::ErrorCode::kIo, fmt::format("{} stays: {}", folder, error.message()));
}

base::Status remove_run_folder(const std::string& run_dir) {
  std::error_code ignored;
  fs::remove(api_socket_path(run_dir), ignored);
  for (const char* name : {"mps", "gpusim", "gpusimd.pid", "gpusimd.spec", "gpusimd.log"}) {
    fs::remove_all(fs::path(run_dir) / name, ignored);
  }
  for (const Role role : kRoles) {
    fs::remove(fs::path(run_dir) / fmt::format("{}.pid", role_name(role)), ignored);
  }
  return remove_if_empty(run_dir);
}

base::Status remove_data_folder(const std::string& data_dir) {
  std::error_code ignored;
  for (const char* name : kDataFiles) fs::remove(fs::path(data_dir) / name, ignored);
  for (const std::string& name : agent::AgentState::file_names()) {
    fs::remove(fs::path(data_dir) / name, ignored);
  }
  for (const std::string& path :
       {credentials_path(data_dir), agents_path(data_dir), agent_key_path(data_dir)}) {
    fs::remove(path, ignored);
    fs::remove(path + ".new", ignored);
  }
  fs::remove(processes_path(data_dir), ignored);
  return remove_if_empty(data_dir);
}

}  // namespace

int down_verb(const DownOptions& options, const Composition& composition) {
  const std::string data_dir = absolute_path(options.data_dir);
  auto roles = read_roles(data_dir, options);
  if (!roles) return refuse(roles.error());
  if (roles->empty()) {
    if (auto status = check_nothing_runs(default_run_dir(data_dir)); !status) {
      return refuse(status.error());
    }
    fmt::print("nothing to remove: no cotenant was started with the data folder {}\n", data_dir);
    return kExitOk;
  }
  for (const RecordedRole& recorded : *roles) {
    if (auto status = end_processes(recorded); !status) return refuse(status.error());
  }
  if (auto status = check_unlocked(data_dir); !status) return refuse(status.error());
  std::set<std::string> run_dirs;
  for (const RecordedRole& recorded : *roles) {
    if (auto status = end_agent_half(recorded, composition); !status) return refuse(status.error());
    run_dirs.insert(recorded.installation.run_dir);
  }
  for (const std::string& run_dir : run_dirs) {
    if (auto status = remove_run_folder(run_dir); !status) return refuse(status.error());
  }
  for (const RecordedRole& recorded : *roles) remove_node_file(data_dir, recorded.role);
  if (options.keep_data) return kExitOk;
  auto status = remove_data_folder(data_dir);
  return status ? kExitOk : refuse(status.error());
}

}  // namespace cotenant::cli
