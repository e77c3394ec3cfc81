// What a container gets of its host beside CPU, memory and GPUs: storage, user, limits, names,
// kernel settings, logs. The core only keeps it; the agent's engine carries it out.
// Source: ECS API reference, ContainerDefinition; the members have ECS's meaning.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cotenant::core {

struct MountPoint {
  std::string volume;  // a name among the task's volumes
  std::string container_path;
  bool read_only = false;
  friend bool operator==(const MountPoint&, const MountPoint&) = default;
};

struct VolumesFrom {
  std::string container;  // of the same task
  bool read_only = false;
  friend bool operator==(const VolumesFrom&, const VolumesFrom&) = default;
};

struct Ulimit {
  std::string name;
  std::int64_t soft = 0;  // -1: unlimited
  std::int64_t hard = 0;
  friend bool operator==(const Ulimit&, const Ulimit&) = default;
};

struct Tmpfs {
  std::string container_path;
  std::int64_t size_mib = 0;
  std::vector<std::string> options;
  friend bool operator==(const Tmpfs&, const Tmpfs&) = default;
};

struct HostDevice {
  std::string host_path;
  std::string container_path;            // empty: as on the host
  std::vector<std::string> permissions;  // "read", "write", "mknod"; empty: all
  friend bool operator==(const HostDevice&, const HostDevice&) = default;
};

struct LogSettings {
  std::string driver;
  std::map<std::string, std::string> options;
  friend bool operator==(const LogSettings&, const LogSettings&) = default;
};

struct HostSettings {
  std::vector<MountPoint> mount_points;
  std::vector<VolumesFrom> volumes_from;
  std::vector<std::string> environment_files;  // paths on the instance
  std::string user;
  std::string hostname;
  bool interactive = false;
  bool pseudo_terminal = false;
  bool privileged = false;
  bool read_only_root = false;
  bool network_disabled = false;
  std::vector<Ulimit> ulimits;
  std::vector<std::string> security_options;
  std::vector<std::string> links;                                // "container" or "container:alias"
  std::vector<std::pair<std::string, std::string>> extra_hosts;  // host name, address
  std::vector<std::string> dns_servers;
  std::vector<std::string> dns_search_domains;
  std::vector<std::pair<std::string, std::string>> system_controls;  // name, value
  bool init_process = false;
  std::int64_t shared_memory_mib = 0;  // 0: the engine's default
  std::optional<std::int64_t> max_swap_mib;
  std::optional<std::int64_t> swappiness;
  std::vector<Tmpfs> tmpfs;
  std::vector<std::string> capabilities_added;
  std::vector<std::string> capabilities_dropped;
  std::vector<HostDevice> devices;
  std::optional<LogSettings> log;  // none: the engine's file, bounded
  friend bool operator==(const HostSettings&, const HostSettings&) = default;
};

}  // namespace cotenant::core
