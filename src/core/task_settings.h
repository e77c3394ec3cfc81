// What a task's containers have in common beside the network mode. The core reads cpu and memory; the
// agent's engine carries out the rest. Source: ECS API reference, RegisterTaskDefinition.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cotenant::core {

// A folder of the host, a volume of the task's own that goes with it, or a volume of the engine that
// stays.
struct Volume {
  enum class Kind { kTask, kHostPath, kShared };
  std::string name;
  Kind kind = Kind::kTask;
  std::string host_path;  // of kHostPath
  std::string driver;     // empty: local
  std::map<std::string, std::string> driver_options;
  std::map<std::string, std::string> labels;
  friend bool operator==(const Volume&, const Volume&) = default;
};

// Whose processes, or whose shared memory, a container sees.
enum class NamespaceMode { kOwn, kHost, kTask, kNone };
std::string_view to_string(NamespaceMode mode);  // "" (own), "host", "task", "none"
std::optional<NamespaceMode> parse_namespace_mode(std::string_view text);

struct TaskSettings {
  std::vector<Volume> volumes;
  NamespaceMode pid_mode = NamespaceMode::kOwn;
  NamespaceMode ipc_mode = NamespaceMode::kOwn;
  std::optional<std::int64_t> cpu_units;   // of the whole task: its reservation and its limit
  std::optional<std::int64_t> memory_mib;  // likewise
  friend bool operator==(const TaskSettings&, const TaskSettings&) = default;
};

const Volume* find_volume(const TaskSettings& settings, std::string_view name);

}  // namespace cotenant::core
