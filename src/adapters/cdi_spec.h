// One CDI specification: the file that says what a container needs to use a device. Source:
// Container Device Interface SPEC.md 1.1.0. Strict like the reference implementation: an unknown
// member or a newer version makes the file invalid, because an edit that is left out would give a
// broken device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ports/container_runtime.h"

namespace cotenant::adapters {

struct CdiDeviceNode {
  std::string path;       // in the container
  std::string host_path;  // the same as `path` unless given
  std::string permissions = "rwm";
  // The file gives the node a mode or an owner of its own.
  bool has_mode_or_owner = false;
};

struct CdiMount {
  std::string host_path;
  std::string container_path;
  std::vector<std::string> options;
  std::string type;  // empty: a bind mount
  bool read_only() const;
};

struct CdiHook {
  std::string hook_name;  // "createContainer"
  std::string path;
};

struct CdiEdits {
  std::vector<ports::EnvironmentVariable> environment;
  std::vector<CdiDeviceNode> device_nodes;
  std::vector<CdiMount> mounts;
  std::vector<CdiHook> hooks;
  std::vector<std::uint32_t> additional_gids;

  // Adds later edits: a variable, a node's path or a mount's target that is there already is
  // replaced.
  void append(const CdiEdits& later);
};

struct CdiDevice {
  std::string name;
  CdiEdits edits;
};

struct CdiSpec {
  // A generated file for eight GPUs has about 100 KB.
  static constexpr std::size_t kFileBytesMax = 4 * 1024 * 1024;
  static constexpr std::size_t kDevicesMax = 1024;
  static constexpr std::size_t kEntriesMax = 4096;  // of each list
  static constexpr std::size_t kTextBytesMax = 4096;

  std::string kind;  // "nvidia.com/gpu"
  std::vector<CdiDevice> devices;
  CdiEdits edits;  // for every device

  const CdiDevice* find(std::string_view device_name) const;
};

// YAML or JSON text; `file` is for messages. Errors: kInvalidParameter, naming file and member.
base::Result<CdiSpec> parse_cdi_spec(std::string_view file, const std::string& text);

}  // namespace cotenant::adapters
