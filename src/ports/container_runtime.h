// What the agent asks of a container engine. Implemented by adapters/docker_runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/task_definition.h"

namespace cotenant::ports {

struct EngineInfo {
  std::string name;     // "Docker Engine"
  std::string version;  // "20.10.24"
  std::int64_t cpu_count = 0;
  std::int64_t memory_mib = 0;
  bool has_bridge = false;                 // the default bridge network exists
  std::vector<std::string> cdi_spec_dirs;  // empty: the engine knows no CDI
  std::vector<std::string> runtimes;       // "runc", "nvidia", ...
  // False: containers are processes of the host, with its files, its network and its users.
  bool has_isolation = true;
};

struct Mount {
  std::string source;
  std::string target;
  bool read_only = false;
  // Makes the source as a directory when it is not there; otherwise the creation fails.
  bool make_source = false;
};

// A volume of the engine, made when it is not there.
struct VolumeMount {
  std::string volume;
  std::string target;
  bool read_only = false;
  std::string driver;  // empty: local
  std::map<std::string, std::string> driver_options;
  std::map<std::string, std::string> labels;
};

struct DeviceNode {
  std::string host_path;
  std::string container_path;
  std::string permissions = "rwm";
};

using core::EnvironmentVariable;
using core::NetworkMode;

struct ContainerSpec {
  std::string name;                      // the engine's name for it, unique on the engine
  std::string image;                     // must be there already
  std::vector<std::string> entry_point;  // empty: the image's
  std::vector<std::string> command;      // empty: the image's
  std::vector<EnvironmentVariable> environment;
  std::map<std::string, std::string> labels;
  std::string working_directory;
  std::int64_t cpu_units = 0;               // 0: the engine's default shares
  std::int64_t memory_mib = 0;              // hard limit; 0: none
  std::int64_t memory_reservation_mib = 0;  // soft limit; 0: none
  NetworkMode network_mode = NetworkMode::kBridge;
  std::int64_t cpu_limit_units = 0;  // 1024: one core at most; 0: no limit
  std::vector<core::PortMapping> ports;
  // Mount points, links, volumes from others and environment files of it stand in the members here.
  core::HostSettings host;
  std::optional<core::HealthCheck> health_check;
  // The engine's name of the container whose network (network_mode awsvpc), processes and shared
  // memory (kTask) this one gets. Empty with ipc_mode kTask: others will get this one's.
  std::string namespace_holder;
  core::NamespaceMode pid_mode = core::NamespaceMode::kOwn;
  core::NamespaceMode ipc_mode = core::NamespaceMode::kOwn;
  std::vector<std::string> links;         // "<engine's name>:<alias>"
  std::vector<std::string> volumes_from;  // "<engine's name>" or "<engine's name>:ro"
  std::vector<Mount> mounts;
  std::vector<VolumeMount> volume_mounts;
  std::vector<DeviceNode> device_nodes;
  std::vector<std::string> cdi_devices;  // "nvidia.com/gpu=GPU-..."
  std::string runtime;                   // empty: the engine's default
};

// Replaces the variable, or adds it.
void set_environment(ContainerSpec& spec, const std::string& name, std::string value);

enum class ContainerPhase { kCreated, kRunning, kStopped };

struct ContainerState {
  std::string id;
  std::string name;
  std::string image;
  std::string image_digest;
  std::map<std::string, std::string> labels;
  ContainerPhase phase = ContainerPhase::kCreated;
  std::optional<int> exit_code;  // when kStopped and the process ever ran
  bool oom_killed = false;
  core::HealthStatus health = core::HealthStatus::kUnknown;  // unknown also without a health check
  std::vector<core::NetworkBinding> bindings = {};           // when kRunning; sorted
  std::string address = {};                                  // when kRunning on a bridge
  std::string error;  // the engine's own text when the process could not be started
  base::TimeMs started_at_ms = 0;
  base::TimeMs finished_at_ms = 0;
};

// Blocking calls, any thread. Errors: kUnavailable (the engine does not answer), kTimeout,
// kNotFound (no such container or image: the message says which), kConflict (the name is taken),
// kClient (the engine refuses the request; its text is passed on), kProtocol.
class ContainerRuntime {
 public:
  virtual ~ContainerRuntime() = default;
  virtual base::Result<EngineInfo> info() = 0;
  // All containers, running or not, that carry label == value.
  virtual base::Result<std::vector<ContainerState>> list(const std::string& label,
                                                         const std::string& value) = 0;
  virtual base::Result<std::string> create(const ContainerSpec& spec) = 0;  // the container's id
  virtual base::Status start(const std::string& id) = 0;
  // SIGTERM (or the image's STOPSIGNAL), then SIGKILL after `timeout_s`. Stopped already: success.
  virtual base::Status stop(const std::string& id, std::int64_t timeout_s) = 0;
  // Removes a stopped container and its anonymous volumes. Gone already: success.
  virtual base::Status remove(const std::string& id) = 0;
  // Makes an image from the files of a tar archive, with `program` as its entry point.
  virtual base::Status import_image(const std::string& image, const std::string& tar,
                                    const std::string& program) = 0;
  // Removes the volumes that carry label == value and that no container has.
  virtual base::Status remove_unused_volumes(const std::string& label,
                                             const std::string& value) = 0;
  // Calls `on_change` whenever a container that carries label == value changed, until `stop`;
  // returns an error when the engine goes away. Events may be lost between calls: list() is the
  // truth.
  virtual base::Status watch(const std::string& label, const std::string& value,
                             const std::function<void()>& on_change, std::stop_token stop) = 0;
};

}  // namespace cotenant::ports
