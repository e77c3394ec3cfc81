#include "cli/node_verbs.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <vector>

#include "agent/agent_loop.h"
#include "base/limits.h"
#include "base/log.h"
#include "cli/agent_key.h"
#include "cli/api_client.h"
#include "cli/credentials_file.h"
#include "cli/exit_code.h"
#include "cli/installation.h"
#include "cli/listen_address.h"
#include "cli/pid_file.h"
#include "cli/simulated_driver.h"
#include "cli/version.h"
#include "net/ws_client.h"
#include "server/control_plane.h"

namespace cotenant::cli {
namespace {

// From the signal to the end of the process.
constexpr std::chrono::seconds kStopLimit{10};

// Blocked in every thread from the start, so that only wait() sees them.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    // What the caller has us ignore (nohup, a shell's background job) stays ignored.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction present {};
      sigaction(signal, nullptr, &present);
      if (present.sa_handler != SIG_IGN) sigaddset(&set_, signal);
    }
    sigaddset(&set_, kControlPlaneFailed);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    ::signal(SIGPIPE, SIG_IGN);
  }
  ~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  int wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
    return signal;
  }
  static constexpr int kControlPlaneFailed = SIGUSR1;

 private:
  sigset_t set_{};
  sigset_t before_{};
};

// Each agent and each client is a file descriptor, and the usual soft limit is 1024. A limit of the
// administrator (the hard one) stays.
void raise_file_limit() {
  constexpr rlim_t kFiles = 65536;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= kFiles) return;
  files.rlim_cur = std::min(files.rlim_max, kFiles);
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// The agent half: its ports, its connection and its loop, in the order in which they depend on each
// other.
struct AgentHalf {
  EngineAdapters engine;
  std::unique_ptr<ports::GpuDriver> driver;
  std::unique_ptr<ports::GpuWiring> wiring;
  std::unique_ptr<ports::MpsControl> mps;
  std::unique_ptr<net::WebSocketClient> sockets;
  std::unique_ptr<agent::Agent> agent;
};

agent::ImageOptions image_options(const NodeOptions& options) {
  agent::ImageOptions images;
  images.behavior =
      agent::parse_pull_behavior(options.image_pull).value_or(agent::PullBehavior::kDefault);
  images.registry_config = options.registry_config;
  images.cleanup.enabled = options.image_cleanup;
  images.cleanup.interval_ms = options.image_cleanup_interval_s * 1000;
  images.cleanup.minimum_age_ms = options.image_cleanup_age_s * 1000;
  images.cleanup.images_per_cycle = options.image_cleanup_count;
  return images;
}

base::Result<AgentHalf> start_agent(const NodeOptions& options, const Installation& installation,
                                    const std::string& server_url, std::optional<int> api_port,
                                    const Composition& composition) {
  AgentHalf half;
  auto engine = make_engine(installation, composition);
  if (!engine) return base::fail(engine.error());
  half.engine = std::move(*engine);
  half.driver = composition.make_gpu_driver(installation.nvml_library);
  half.wiring = installation.runtime == kProcessRuntime
                    ? composition.make_process_gpu_wiring(installation.cdi_dir)
                    : composition.make_gpu_wiring(installation.cdi_dir);
  half.mps = composition.make_mps_control(mps_options(installation));
  auto sockets = net::WebSocketClient::create(options.ca_certificate);
  if (!sockets) return base::fail(sockets.error());
  half.sockets = std::move(*sockets);

  agent::AgentOptions agent_options;
  // Filled in before the agent starts: its id is known only once it has opened its data folder.
  const auto headers = std::make_shared<std::vector<ports::HttpHeader>>();
  agent_options.connect = [client = half.sockets.get(), server_url,
                           headers](std::shared_ptr<ports::WebSocketListener> listener) {
    return client->connect(server_url, "/agent/v1", std::move(listener), {}, *headers);
  };
  agent_options.open_stream = [client = half.sockets.get(), server_url, headers](
                                  const std::string& stream_id,
                                  std::shared_ptr<ports::WebSocketListener> listener) {
    return client->connect(server_url, "/agent/v1/streams/" + stream_id, std::move(listener), {},
                           *headers);
  };
  agent_options.link.server = server_url;
  agent_options.cluster = options.cluster;
  agent_options.data_dir = installation.data_dir;
  agent_options.agent_version = kVersion;
  agent_options.api_port = api_port;
  agent_options.mps_control_binary = installation.mps_control;
  agent_options.logic.cleanup_wait_ms = options.task_cleanup_wait_s * 1000;
  agent_options.images = image_options(options);
  auto agent = agent::Agent::create(
      std::move(agent_options), {*half.engine.runtime, *half.engine.images, *half.engine.streams,
                                 *half.driver, *half.mps, *half.wiring});
  if (!agent) return base::fail(agent.error());
  half.agent = std::move(*agent);
  auto shown =
      agent_headers(installation.data_dir, half.agent->instance_id(), options.join_token_file);
  if (!shown) return base::fail(shown.error());
  *headers = std::move(*shown);
  if (auto status = half.agent->start(); !status) return base::fail(status.error());
  return half;
}

base::Result<std::unique_ptr<server::ControlPlane>> start_control_plane(
    const NodeOptions& options, const ListenAddress& listen, const Installation& installation,
    const Composition& composition) {
  auto store = composition.open_store(installation.data_dir);
  if (!store) return base::fail(store.error());
  server::ControlPlaneOptions plane;
  plane.address = listen.host;
  plane.port = listen.port;
  plane.region = options.region;
  plane.account_id = options.account_id;
  plane.must_sign = options.auth != "off";
  plane.allow_plain_http = options.allow_plain_http;
  plane.tls_certificate = options.tls_certificate;
  plane.tls_key = options.tls_key;
  plane.agents_file = agents_path(installation.data_dir);
  plane.unix_socket = api_socket_path(installation.run_dir);
  if (plane.must_sign) {
    const std::string path = credentials_path(installation.data_dir);
    auto profiles = load_or_create_credentials(path, options.region);
    if (!profiles) return base::fail(profiles.error());
    for (const auto& [name, profile] : *profiles) {
      plane.secrets[profile.credentials.access_key_id] = profile.credentials.secret_access_key;
      if (!profile.region.empty() && profile.region != options.region) {
        base::log::warn(
            "{}: profile [{}] has region {}, but --region is {}: clients that go by the "
            "file will be refused",
            path, name, profile.region, options.region);
      }
    }
  }
  return server::ControlPlane::start(plane, std::move(*store), [](const base::Error&) {
    ::kill(::getpid(), StopSignals::kControlPlaneFailed);
  });
}

Installation installation_of(const NodeOptions& options) {
  Installation installation;
  installation.data_dir = absolute_path(options.data_dir);
  installation.run_dir = options.run_dir.empty() ? default_run_dir(installation.data_dir)
                                                 : absolute_path(options.run_dir);
  installation.runtime = options.runtime;
  installation.docker_host = resolve_docker_host(options.docker_host);
  installation.simulate_gpus = options.simulate_gpus;
  installation.nvml_library = absolute_program(options.nvml_library);
  installation.mps_control = absolute_program(options.mps_control);
  installation.cdi_dir = absolute_path(options.cdi_dir);
  return installation;
}

// What was left in another run folder must not be forgotten, nor a running process be doubled.
base::Status check_not_elsewhere(Role role, const Installation& installation) {
  auto recorded = read_node_file(installation.data_dir, role);
  if (!recorded) {
    // A start with the same options is the remedy for a damaged record.
    base::log::warn("{}", recorded.error().message);
  } else if (*recorded && (*recorded)->runtime != installation.runtime) {
    return base::fail(
        base::ErrorCode::kConflict,
        fmt::format("--runtime {}: with this data folder cotenant {} was started with {}, and its "
                    "containers are there; give that one, or `cotenant down` first",
                    installation.runtime, role_name(role), (*recorded)->runtime));
  } else if (*recorded && (*recorded)->run_dir != installation.run_dir) {
    return base::fail(
        base::ErrorCode::kConflict,
        fmt::format("--run-dir {}: with this data folder cotenant {} was started with {}; "
                    "give that one, or `cotenant down` first",
                    installation.run_dir, role_name(role), (*recorded)->run_dir));
  }
  if (const auto running = read_pid_file(pid_file_path(installation, role))) {
    return base::fail(
        base::ErrorCode::kConflict,
        fmt::format("cotenant {} runs already with this run folder, pid {}; `cotenant "
                    "down` ends it, or choose other folders with --data-dir",
                    role_name(role), running->pid));
  }
  return {};
}

// Folders and the records that `down` goes by.
base::Status prepare(Role role, const Installation& installation) {
  if (role != Role::kServer && installation.run_dir.size() > base::limits::kRunDirChars) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format("--run-dir {}: has {} characters, but the sockets of MPS below it "
                    "allow {}; choose a shorter one",
                    installation.run_dir, installation.run_dir.size(), base::limits::kRunDirChars));
  }
  if (auto status = check_not_elsewhere(role, installation); !status) return status;
  if (auto status = make_folders(installation); !status) return status;
  if (auto status = write_node_file(installation, role); !status) return status;
  return write_pid_file(pid_file_path(installation, role), ::getpid());
}

// The simulated driver comes last before the agent, so that a start which is refused leaves none behind.
base::Result<AgentHalf> start_node(const NodeOptions& options, Installation& installation,
                                   Role role, const std::string& server_url,
                                   std::optional<int> api_port, const Composition& composition) {
  if (installation.simulate_gpus.empty()) {
    return start_agent(options, installation, server_url, api_port, composition);
  }
  auto driver = use_simulated_driver(installation);
  if (!driver) return base::fail(driver.error());
  base::Status written = write_node_file(installation, role);
  auto half = written ? start_agent(options, installation, server_url, api_port, composition)
                      : base::Result<AgentHalf>(base::fail(written.error()));
  if (!half && *driver == DriverStart::kStarted) {
    if (auto ended = end_simulated_driver(installation); !ended) {
      base::log::warn("{}", ended.error().message);
    }
  }
  return half;
}

// An action of the agent may wait for an engine or a container; whoever has asked us to end, has
// not.
void end_process_after(std::chrono::seconds limit, int exit_code) {
  std::thread([limit, exit_code] {
    std::this_thread::sleep_for(limit);
    std::_Exit(exit_code);
  }).detach();
}

void announce(const std::optional<std::string>& url, const NodeOptions& options,
              const Installation& installation) {
  if (url) {
    fmt::print("cotenant {} is ready on {}\n", kVersion, *url);
    fmt::print("  data folder {}, run folder {}\n", installation.data_dir, installation.run_dir);
    if (options.auth == "off") {
      fmt::print("  AWS SDKs and CLI: endpoint {}, region {}, any credentials (--auth off)\n", *url,
                 options.region);
    } else {
      fmt::print("  AWS SDKs and CLI: endpoint {}, region {}, AWS_SHARED_CREDENTIALS_FILE={}\n",
                 *url, options.region, credentials_path(installation.data_dir));
    }
  } else {
    fmt::print("cotenant {} agent is running\n", kVersion);
  }
  if (!installation.simulate_gpus.empty()) {
    fmt::print("  GPUs are SIMULATED ({}): no kernel really runs\n", installation.simulate_gpus);
  }
  if (installation.runtime == kProcessRuntime) {
    fmt::print(
        "  containers are PROCESSES of this machine: no image, no isolation; see "
        "docs/operations.md\n");
  }
  std::fflush(stdout);
}

}  // namespace

base::Result<EngineAdapters> make_engine(const Installation& installation,
                                         const Composition& composition) {
  return installation.runtime == kProcessRuntime
             ? composition.make_process_engine(processes_path(installation.data_dir))
             : composition.make_engine(installation.docker_host);
}

MpsOptions mps_options(const Installation& installation) {
  MpsOptions options{installation.run_dir, installation.mps_control, {}};
  if (!installation.simulate_gpus.empty()) {
    options.environment["GPUSIM_DIR"] = simulated_driver_dir(installation);
  }
  return options;
}

int node_verb(Role role, const NodeOptions& options, const Composition& composition) {
  const StopSignals signals;
  if (role != Role::kAgent) raise_file_limit();
  auto listen = parse_listen_address(options.listen);
  if (!listen) return refuse(listen.error());
  Installation installation = installation_of(options);
  if (auto status = prepare(role, installation); !status) return refuse(status.error());

  std::unique_ptr<server::ControlPlane> plane;
  std::optional<std::string> url;
  if (role != Role::kAgent) {
    auto started = start_control_plane(options, *listen, installation, composition);
    if (!started) return refuse(started.error());
    plane = std::move(*started);
    listen->port = plane->port();
    url = listen->url(!options.tls_certificate.empty());
  }
  std::optional<AgentHalf> half;
  if (role != Role::kServer) {
    // In one process the agent needs no token: it comes by the unix socket.
    const std::string server_url =
        plane ? "unix://" + api_socket_path(installation.run_dir) : options.server_url;
    auto started = start_node(options, installation, role, server_url,
                              url ? std::optional<int>(listen->port) : std::nullopt, composition);
    if (!started) return refuse(started.error());
    half = std::move(*started);
  }
  announce(url, options, installation);

  int exit_code = kExitOk;
  while (signals.wait() == StopSignals::kControlPlaneFailed) {
    if (!plane) continue;  // somebody else's signal
    plane.reset();
    exit_code = kExitRefused;
    if (!half) break;
    base::log::error(
        "the control plane has stopped; the agent and its containers go on. Restart "
        "cotenant when the store is mended");
  }
  base::log::info("stopping; containers, MPS daemons and simulated GPUs stay as they are");
  end_process_after(kStopLimit, exit_code);
  // What is still being done then, the next agent sees the outcome of.
  if (half && !half->agent->stop()) std::_Exit(exit_code);
  return exit_code;
}

}  // namespace cotenant::cli
