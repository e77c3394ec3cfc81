#include "adapters/mps_daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "adapters/child_process.h"
#include "adapters/mps_console.h"
#include "base/log.h"
#include "base/process_identity.h"

namespace cotenant::adapters {

using base::identify_process;
using base::parent_of;
using base::start_environment;
namespace {

using base::ErrorCode;
using SteadyClock = std::chrono::steady_clock;

// Nothing tells us when the daemon is ready, so it is asked this often.
constexpr std::chrono::milliseconds kPollInterval{20};
// GPUs whose UUIDs begin alike; far more than can be in one machine.
constexpr int kShortIdAttempts = 64;

base::Status bad_uuid(const std::string& gpu_uuid) {
  return base::fail(ErrorCode::kIo, fmt::format("\"{}\" is not a GPU's UUID (GPU- and 8-4-4-4-12 "
                                                "hexadecimal digits)",
                                                gpu_uuid));
}

std::string with_log_line(std::string message, const MpsDirectory& directory,
                          const std::string& log) {
  if (const std::string line = directory.last_log_line(log); !line.empty()) {
    message += fmt::format("; the last line of {}/{} is \"{}\"", directory.log(), log, line);
  }
  return message;
}

// The server as something that may be signalled: only when it is the daemon's child.
std::optional<ProcessIdentity> identify_server(pid_t server, const ProcessIdentity& daemon) {
  if (parent_of(server) != std::optional(daemon.pid)) return std::nullopt;
  return identify_process(server);
}

// The GPU whose daemon lives in this folder, or has left its server there, or was started by somebody
// who ended before it was recorded.
std::optional<std::string> gpu_in_use(const MpsDirectory& directory) {
  const std::optional<MpsRecord> record = directory.read_record();
  if (record && (is_alive(record->daemon) || (record->server && is_alive(*record->server)))) {
    return record->gpu_uuid;
  }
  const std::optional<pid_t> pid = directory.read_pid_file();
  if (!pid || start_environment(*pid, "CUDA_MPS_PIPE_DIRECTORY") != directory.pipe()) {
    return std::nullopt;
  }
  const auto uuid = start_environment(*pid, "CUDA_VISIBLE_DEVICES");
  return uuid && is_gpu_uuid(*uuid) ? uuid : std::nullopt;
}

}  // namespace

// The steps for one GPU. All but the constructor need `mutex` held.
struct MpsDaemon::Gpu {
  Gpu(const MpsDaemonOptions& daemon_options, const std::vector<std::string>& base_environment,
      std::string gpu_uuid, std::string path)
      : options(daemon_options), uuid(std::move(gpu_uuid)), directory(std::move(path)) {
    console.gpu_uuid = uuid;
    console.control_binary = options.control_binary;
    console.timeout = options.console_timeout;
    console.environment = base_environment;
    console.environment.push_back("CUDA_MPS_PIPE_DIRECTORY=" + directory.pipe());
    console.environment.push_back("CUDA_MPS_LOG_DIRECTORY=" + directory.log());
    console.environment.push_back("CUDA_VISIBLE_DEVICES=" + uuid);
  }

  std::optional<MpsRecord> live_record() const;
  std::optional<ProcessIdentity> unrecorded_daemon() const;
  base::Status end(const ProcessIdentity& process) const;
  base::Status remove_leftovers() const;
  base::Status launch() const;
  base::Result<ProcessIdentity> wait_until_answering() const;
  base::Status ensure_active_server(MpsRecord record) const;
  base::Status remember_server(MpsRecord& record, pid_t server) const;
  base::Status start_new() const;
  std::vector<ProcessIdentity> quit(const MpsRecord& record) const;
  base::Status shut_down() const;

  const MpsDaemonOptions& options;
  const std::string uuid;
  const MpsDirectory directory;
  MpsConsole console;
  std::mutex mutex;
};

std::optional<MpsRecord> MpsDaemon::Gpu::live_record() const {
  std::optional<MpsRecord> record = directory.read_record();
  if (!record || record->gpu_uuid != uuid || !is_alive(record->daemon)) return std::nullopt;
  return record;
}

// A daemon that runs in our pipe directory without being in the record. The pid file alone is no
// proof (it stays behind after a kill and the pid may be a stranger's), its environment is.
std::optional<ProcessIdentity> MpsDaemon::Gpu::unrecorded_daemon() const {
  const std::optional<pid_t> pid = directory.read_pid_file();
  if (!pid) return std::nullopt;
  std::optional<ProcessIdentity> process = identify_process(*pid);
  if (!process) return std::nullopt;
  const std::string program = std::filesystem::path(options.control_binary).filename();
  if (process->command.find(program) == std::string::npos) return std::nullopt;
  if (start_environment(*pid, "CUDA_MPS_PIPE_DIRECTORY") != std::optional(directory.pipe())) {
    return std::nullopt;
  }
  return process;
}

base::Status MpsDaemon::Gpu::end(const ProcessIdentity& process) const {
  if (end_process(process, options.stop_grace)) return {};
  return base::fail(ErrorCode::kTimeout,
                    fmt::format("pid {} ({}) of {} is still there after SIGKILL; the GPU hangs",
                                process.pid, process.command, uuid));
}

// Ends what is left of a daemon that is not (or no longer) usable and removes its sockets.
base::Status MpsDaemon::Gpu::remove_leftovers() const {
  std::vector<ProcessIdentity> left;
  if (auto daemon = unrecorded_daemon()) left.push_back(*daemon);
  const std::optional<MpsRecord> record = directory.read_record();
  if (record && record->gpu_uuid == uuid && record->server) left.push_back(*record->server);
  for (const ProcessIdentity& process : left) {
    if (!is_alive(process)) continue;
    base::log::warn("{}: ending pid {}, left over from an earlier MPS control daemon", uuid,
                    process.pid);
    if (auto status = end(process); !status) return status;
  }
  if (auto status = directory.remove_pipe(); !status) return status;
  directory.remove_record();
  return {};
}

base::Status MpsDaemon::Gpu::launch() const {
  ChildSpec spec;
  spec.program = options.control_binary;
  spec.arguments = {"-d", "-multiuser-server"};
  spec.environment = console.environment;
  spec.output_file = directory.log() + "/startup.log";
  spec.new_session = true;
  spec.timeout = options.launch_timeout;
  auto outcome = run_child(spec);
  if (!outcome) {
    return base::fail(ErrorCode::kIo, outcome.error().message +
                                          ": --mps-control must name nvidia-cuda-mps-control");
  }
  if (outcome->succeeded()) return {};
  const std::string how =
      outcome->timed_out
          ? fmt::format("did not go into the background within {} ms", spec.timeout.count())
      : outcome->signal != 0 ? fmt::format("was ended by signal {}", outcome->signal)
                             : fmt::format("ended with exit code {}", outcome->exit_code);
  return base::fail(ErrorCode::kIo,
                    with_log_line(fmt::format("the MPS control daemon of {} was not started: {} {}",
                                              uuid, options.control_binary, how),
                                  directory, "startup.log"));
}

base::Result<ProcessIdentity> MpsDaemon::Gpu::wait_until_answering() const {
  const auto deadline = SteadyClock::now() + options.launch_timeout;
  std::string last = "it wrote no pid file";
  while (true) {
    if (const std::optional<pid_t> pid = directory.read_pid_file()) {
      std::optional<ProcessIdentity> daemon = identify_process(*pid);
      if (!daemon) {
        return base::fail(
            ErrorCode::kIo,
            with_log_line(
                fmt::format("the MPS control daemon of {} ended as soon as it was started", uuid),
                directory, "control.log"));
      }
      const auto percent = console.default_active_thread_percentage();
      if (percent && is_alive(*daemon)) return *daemon;
      if (!percent && percent.error().code != ErrorCode::kUnavailable)
        return base::fail(percent.error());
      if (!percent) last = percent.error().message;
    }
    if (SteadyClock::now() >= deadline) {
      return base::fail(
          ErrorCode::kIo,
          with_log_line(fmt::format("the MPS control daemon of {} was not ready within {} "
                                    "ms: {}",
                                    uuid, options.launch_timeout.count(), last),
                        directory, "control.log"));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

base::Status MpsDaemon::Gpu::remember_server(MpsRecord& record, pid_t server) const {
  if (record.server_pid != 0 && record.server_pid != server) {
    base::log::warn("{}: the MPS server is now pid {}, it was pid {}", uuid, server,
                    record.server_pid);
  }
  record.server_pid = server;
  record.server = identify_server(server, record.daemon);
  return directory.write_record(record);
}

// A server is started before the first client comes: a client that finds none on an idle GPU could
// take the whole of it.
base::Status MpsDaemon::Gpu::ensure_active_server(MpsRecord record) const {
  const auto deadline = SteadyClock::now() + options.server_timeout;
  bool asked = false;
  std::string state = "absent";
  while (true) {
    const auto servers = console.server_list();
    if (!servers) return base::fail(servers.error());
    if (servers->empty() && !asked) {
      asked = true;
      if (auto answer = console.command("start_server -uid 0"); !answer) {
        return base::fail(answer.error());
      }
      continue;
    }
    if (!servers->empty()) {
      const bool known = std::ranges::count(*servers, record.server_pid) > 0;
      const pid_t server = known ? record.server_pid : servers->front();
      if (!known) {
        if (auto written = remember_server(record, server); !written) return written;
      }
      const auto status = console.server_status(server);
      // kUnavailable: the server has ended since it was listed; the next turn shows it.
      if (!status && status.error().code != ErrorCode::kUnavailable)
        return base::fail(status.error());
      state = status ? *status : status.error().message;
      if (state == "ACTIVE") return {};
      if (state == "FAULT") {
        return base::fail(
            ErrorCode::kUnavailable,
            fmt::format("the MPS server of {} (pid {}) is in state FAULT: every client on "
                        "the GPU must end before it serves again",
                        uuid, server));
      }
    }
    if (SteadyClock::now() >= deadline) {
      return base::fail(
          ErrorCode::kUnavailable,
          with_log_line(fmt::format("the MPS server of {} was not ACTIVE within {} ms; its "
                                    "state: {}",
                                    uuid, options.server_timeout.count(), state),
                        directory, "server.log"));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

base::Status MpsDaemon::Gpu::start_new() const {
  if (auto status = launch(); !status) return status;
  const auto daemon = wait_until_answering();
  if (!daemon) return base::fail(daemon.error());
  const MpsRecord record{uuid, *daemon, 0, std::nullopt};
  if (auto status = directory.write_record(record); !status) return status;
  return ensure_active_server(record);
}

// The polite way out: drop the clients' server, then the daemon. Gives back the servers that may be
// signalled should they stay; what fails here is done by force afterwards.
std::vector<ProcessIdentity> MpsDaemon::Gpu::quit(const MpsRecord& record) const {
  std::vector<ProcessIdentity> servers;
  if (record.server) servers.push_back(*record.server);
  const auto listed = console.server_list();
  if (!listed) {
    base::log::warn("{}", listed.error().message);
    return servers;
  }
  for (const pid_t pid : *listed) {
    if (auto server = identify_server(pid, record.daemon)) servers.push_back(*server);
  }
  std::vector<std::string> commands;
  for (const pid_t pid : *listed) commands.push_back(fmt::format("shutdown_server {} -f", pid));
  commands.push_back("quit");
  for (const std::string& command : commands) {
    const auto answer = console.command(command);
    if (answer) continue;
    base::log::warn("{}", answer.error().message);
    if (answer.error().code == ErrorCode::kTimeout) return servers;
  }
  wait_until_gone(record.daemon, options.stop_grace);
  return servers;
}

base::Status MpsDaemon::Gpu::shut_down() const {
  if (const std::optional<MpsRecord> record = live_record()) {
    std::vector<ProcessIdentity> processes = quit(*record);
    processes.insert(processes.begin(), record->daemon);
    for (const ProcessIdentity& process : processes) {
      if (auto status = end(process); !status) return status;
    }
  }
  return remove_leftovers();
}

MpsDaemon::MpsDaemon(MpsDaemonOptions options) : options_(std::move(options)) {
  for (const char* name : {"PATH", "LD_LIBRARY_PATH"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && !options_.environment.contains(name)) {
      base_environment_.push_back(fmt::format("{}={}", name, value));
    }
  }
  const std::set<std::string> ours{"CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY",
                                   "CUDA_VISIBLE_DEVICES"};
  for (const auto& [name, value] : options_.environment) {
    if (!ours.contains(name)) base_environment_.push_back(fmt::format("{}={}", name, value));
  }
}

MpsDaemon::~MpsDaemon() = default;

// The folder whose record names this GPU; else the first that neither a record nor another GPU of
// this object has.
MpsDaemon::Gpu& MpsDaemon::find(const std::string& gpu_uuid) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = gpus_.find(gpu_uuid); known != gpus_.end()) return *known->second;
  std::set<std::string> taken;
  for (const auto& [uuid, gpu] : gpus_) taken.insert(gpu->directory.path());
  std::string chosen;
  for (int attempt = 0; attempt < kShortIdAttempts; ++attempt) {
    const std::string path = fmt::format("{}/{}", mps_folder(), mps_short_id(gpu_uuid, attempt));
    if (taken.contains(path)) continue;
    const std::optional<MpsRecord> record = MpsDirectory(path).read_record();
    if (record && record->gpu_uuid == gpu_uuid) {
      chosen = path;
      break;
    }
    if (!record && chosen.empty()) chosen = path;
  }
  auto gpu = std::make_unique<Gpu>(options_, base_environment_, gpu_uuid, chosen);
  return *gpus_.emplace(gpu_uuid, std::move(gpu)).first->second;
}

base::Status MpsDaemon::start(const std::string& gpu_uuid) {
  if (!is_gpu_uuid(gpu_uuid)) return bad_uuid(gpu_uuid);
  Gpu& gpu = find(gpu_uuid);
  const std::lock_guard lock(gpu.mutex);
  if (const std::optional<MpsRecord> record = gpu.live_record())
    return gpu.ensure_active_server(*record);

  if (auto status = gpu.remove_leftovers(); !status) return status;
  if (auto status = gpu.directory.prepare(); !status) return status;
  base::Status started = gpu.start_new();
  if (started) {
    base::log::info("{}: MPS control daemon started in {}", gpu_uuid, gpu.directory.path());
    return started;
  }
  if (auto status = gpu.shut_down(); !status) base::log::warn("{}", status.error().message);
  return started;
}

base::Status MpsDaemon::probe(const std::string& gpu_uuid) {
  if (!is_gpu_uuid(gpu_uuid)) return bad_uuid(gpu_uuid);
  Gpu& gpu = find(gpu_uuid);
  const std::lock_guard lock(gpu.mutex);
  const std::optional<MpsRecord> record = gpu.live_record();
  if (!record || record->server_pid == 0) {
    return base::fail(ErrorCode::kUnavailable, fmt::format("no MPS control {} of ours runs for {}",
                                                           record ? "server" : "daemon", gpu_uuid));
  }
  if (const auto percent = gpu.console.default_active_thread_percentage(); !percent) {
    return base::fail(percent.error());
  }
  const auto state = gpu.console.server_status(record->server_pid);
  if (!state) return base::fail(state.error());
  if (*state == "ACTIVE") return {};
  return base::fail(ErrorCode::kUnavailable,
                    fmt::format("the MPS server of {} (pid {}) is in state {}, not ACTIVE",
                                gpu_uuid, record->server_pid, *state));
}

base::Status MpsDaemon::stop(const std::string& gpu_uuid) {
  if (!is_gpu_uuid(gpu_uuid)) return bad_uuid(gpu_uuid);
  Gpu& gpu = find(gpu_uuid);
  const std::lock_guard lock(gpu.mutex);
  return gpu.shut_down();
}

std::vector<std::string> MpsDaemon::running() {
  std::vector<std::string> uuids;
  std::error_code error;
  std::filesystem::directory_iterator folder(mps_folder(), error);
  for (; !error && folder != std::filesystem::directory_iterator(); folder.increment(error)) {
    if (auto uuid = gpu_in_use(MpsDirectory(folder->path()))) uuids.push_back(std::move(*uuid));
  }
  std::ranges::sort(uuids);
  return uuids;
}

std::string MpsDaemon::control_socket(const std::string& gpu_uuid) const {
  return is_gpu_uuid(gpu_uuid) ? find(gpu_uuid).directory.control_socket() : std::string();
}

}  // namespace cotenant::adapters
