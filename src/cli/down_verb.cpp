// `down`: everything that `up` left on this machine, in the order in which nothing comes back: first who
// would restart things, then containers, then their daemons, then the driver, then the folders.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <filesystem>

#include "agent/agent_state.h"
#include "agent/labels.h"
#include "base/limits.h"
#include "cli/api_client.h"
#include "cli/exit_code.h"
#include "cli/installation.h"
#include "cli/node_verbs.h"
#include "cli/pid_file.h"
#include "cli/simulated_driver.h"

namespace cotenant::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kProcessGrace{15};
constexpr std::int64_t kContainerStopSeconds = 10;

base::Status end_processes(const Installation& installation) {
  for (const char* role : {"agent", "up", "server"}) {
    const auto process = read_pid_file(fmt::format("{}/{}.pid", installation.run_dir, role));
    if (!process) continue;
    if (!end_process(*process, kProcessGrace)) {
      return base::fail(base::ErrorCode::kTimeout,
                        fmt::format("cotenant {}, pid {}, does not end", role, process->pid));
    }
    fmt::print("ended cotenant {}, pid {}\n", role, process->pid);
  }
  return {};
}

base::Status remove_containers(const Installation& installation, const std::string& instance_id,
                               const Composition& composition) {
  auto runtime = composition.make_runtime(installation.docker_host);
  if (!runtime) return base::fail(runtime.error());
  auto containers = (*runtime)->list(agent::kInstanceLabel, instance_id);
  if (!containers) return base::fail(containers.error());
  for (const ports::ContainerState& container : *containers) {
    if (container.phase == ports::ContainerPhase::kRunning) {
      if (auto status = (*runtime)->stop(container.id, kContainerStopSeconds); !status) return status;
    }
    if (auto status = (*runtime)->remove(container.id); !status) return status;
    fmt::print("removed container {}\n", container.name);
  }
  return {};
}

base::Status end_daemons(const Installation& installation, const Composition& composition) {
  MpsOptions options{installation.run_dir, installation.mps_control, {}};
  if (!installation.simulate_gpus.empty()) {
    options.environment["GPUSIM_DIR"] = simulated_driver_dir(installation);
  }
  const auto mps = composition.make_mps_control(options);
  for (const std::string& gpu_uuid : mps->running()) {
    if (auto status = mps->stop(gpu_uuid); !status) return status;
    fmt::print("ended the MPS daemon of {}\n", gpu_uuid);
  }
  return {};
}

// Only what cotenant made: a folder that holds something else stays, with that in it.
void remove_folders(const Installation& installation, bool keep_data) {
  std::error_code ignored;
  for (const char* name : {"mps", "gpusim", "gpusimd.pid", "gpusimd.spec", "gpusimd.log", "up.pid",
                           "server.pid", "agent.pid"}) {
    fs::remove_all(fs::path(installation.run_dir) / name, ignored);
  }
  fs::remove(installation.run_dir, ignored);
  if (keep_data) return;
  constexpr std::array kDataFiles = {"cotenant.db", "cotenant.db-wal", "cotenant.db-shm",
                                     "cotenant.db.lock", "node.json"};
  for (const char* name : kDataFiles) fs::remove(fs::path(installation.data_dir) / name, ignored);
  for (const std::string& name : agent::AgentState::file_names()) {
    fs::remove(fs::path(installation.data_dir) / name, ignored);
  }
  if (fs::remove(installation.data_dir, ignored)) {
    fmt::print("removed {} and {}\n", installation.run_dir, installation.data_dir);
  }
}

}  // namespace

int down_verb(const DownOptions& options, const Composition& composition) {
  const std::string data_dir = absolute_path(options.data_dir);
  auto recorded = read_node_file(data_dir);
  Installation installation = recorded.value_or(Installation{});
  installation.data_dir = data_dir;
  if (!options.run_dir.empty()) installation.run_dir = absolute_path(options.run_dir);
  if (installation.run_dir.empty()) installation.run_dir = default_run_dir(data_dir);
  if (!options.docker_host.empty()) installation.docker_host = options.docker_host;
  if (!fs::exists(data_dir) && !fs::exists(installation.run_dir)) {
    fmt::print("nothing to remove: neither {} nor {} is there\n", data_dir, installation.run_dir);
    return kExitOk;
  }
  if (auto status = end_processes(installation); !status) return report(status.error());
  if (recorded) {
    // A server without an agent has no containers.
    auto instance_id = agent::AgentState::read_instance_id(data_dir);
    if (!instance_id) return report(instance_id.error());
    if (*instance_id) {
      auto status = remove_containers(installation, **instance_id, composition);
      if (!status) return report(status.error());
    }
    if (auto status = end_daemons(installation, composition); !status) return report(status.error());
    if (auto status = end_simulated_driver(installation); !status) return report(status.error());
  }
  remove_folders(installation, options.keep_data);
  return kExitOk;
}

}  // namespace cotenant::cli
