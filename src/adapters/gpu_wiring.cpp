#include "adapters/gpu_wiring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "adapters/cdi_registry.h"
#include "adapters/podman_create.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Status;

constexpr const char* kVisibleDevices = "NVIDIA_VISIBLE_DEVICES";
// For the nvidia runtime: behave as plain runc.
constexpr const char* kNoDevices = "void";
constexpr const char* kNvidiaRuntime = "nvidia";
constexpr const char* kRemedy =
    "Use Docker 25 or newer with CDI on and this folder among its cdi-spec-dirs, or install the "
    "NVIDIA "
    "Container Toolkit and run: nvidia-ctk runtime configure --runtime=docker";
constexpr const char* kPodmanRemedy =
    "Install the NVIDIA Container Toolkit, run: nvidia-ctk cdi generate "
    "--output=/etc/cdi/nvidia.yaml, and start the agent with --cdi-dir /etc/cdi";

// Two spellings of one folder; /var/run is a link to /run on every current distribution.
std::string normal_folder(std::string_view folder) {
  std::string text = std::filesystem::path(folder).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  if (text == "/var/run" || text.starts_with("/var/run/")) text.erase(0, 4);
  return text;
}

bool engine_reads(const GpuWiringInput& input) {
  if (input.cdi_dir.empty()) return false;
  return std::any_of(
      input.engine_cdi_dirs.begin(), input.engine_cdi_dirs.end(),
      [&](const std::string& dir) { return normal_folder(dir) == normal_folder(input.cdi_dir); });
}

// A create request's bind mount is recursive and private. It has no counterpart for nosuid and
// nodev, which are let go: what is mounted are the driver's own files.
bool is_plain_bind(const CdiMount& mount) {
  static constexpr std::array<std::string_view, 9> kPlain = {
      "ro", "rw", "bind", "rbind", "private", "rprivate", "nosuid", "nodev", "exec"};
  if (!mount.type.empty() && mount.type != "bind" && mount.type != "none") return false;
  return std::all_of(mount.options.begin(), mount.options.end(), [](const std::string& option) {
    return std::find(kPlain.begin(), kPlain.end(), option) != kPlain.end();
  });
}

// What a create request cannot express; nothing when it can express all.
std::optional<std::string> inexpressible(const CdiEdits& edits) {
  if (!edits.hooks.empty()) {
    return fmt::format("the CDI spec needs the hook {}, which only an engine with CDI runs",
                       edits.hooks.front().path);
  }
  if (!edits.additional_gids.empty()) {
    return "the CDI spec asks for additionalGids, which only an engine with CDI sets";
  }
  for (const CdiMount& mount : edits.mounts) {
    if (!is_plain_bind(mount)) {
      return fmt::format("the CDI spec's mount of {} is not a plain bind mount (options {})",
                         mount.container_path, fmt::join(mount.options, ","));
    }
  }
  for (const CdiDeviceNode& node : edits.device_nodes) {
    if (node.has_mode_or_owner) {
      return fmt::format(
          "the CDI spec's device node {} has a mode or owner of its own, which only "
          "an engine with CDI sets",
          node.path);
    }
  }
  return std::nullopt;
}

void apply(const CdiEdits& edits, ports::ContainerSpec& spec) {
  for (const ports::EnvironmentVariable& variable : edits.environment) {
    set_environment(spec, variable.name, variable.value);
  }
  for (const CdiDeviceNode& node : edits.device_nodes) {
    std::erase_if(spec.device_nodes,
                  [&](const auto& other) { return other.container_path == node.path; });
    spec.device_nodes.push_back({node.host_path, node.path, node.permissions});
  }
  for (const CdiMount& mount : edits.mounts) {
    std::erase_if(spec.mounts,
                  [&](const auto& other) { return other.target == mount.container_path; });
    spec.mounts.push_back({mount.host_path, mount.container_path, mount.read_only()});
  }
}

}  // namespace

Status wire_gpus(const GpuWiringInput& input, ports::ContainerSpec& spec) {
  const bool by_name = engine_reads(input);
  if (by_name && input.edits) {
    for (const std::string& uuid : input.gpu_uuids) {
      spec.cdi_devices.push_back(fmt::format("{}={}", kNvidiaCdiKind, uuid));
    }
    set_environment(spec, kVisibleDevices, kNoDevices);
    return {};
  }
  const std::optional<std::string> closed =
      input.edits ? inexpressible(*input.edits) : std::optional(input.edits.error().message);
  if (!closed) {
    set_environment(spec, kVisibleDevices, kNoDevices);  // the spec's own value may replace it
    apply(*input.edits, spec);
    return {};
  }
  if (std::find(input.engine_runtimes.begin(), input.engine_runtimes.end(), kNvidiaRuntime) !=
      input.engine_runtimes.end()) {
    spec.runtime = kNvidiaRuntime;
    set_environment(spec, kVisibleDevices, fmt::format("{}", fmt::join(input.gpu_uuids, ",")));
    return {};
  }
  std::string reasons;
  if (!by_name) {
    reasons = fmt::format(
        "the engine does not read the CDI folder '{}' (it reads: {}); ", input.cdi_dir,
        input.engine_cdi_dirs.empty() ? "none"
                                      : fmt::format("{}", fmt::join(input.engine_cdi_dirs, ", ")));
  }
  return fail(
      ErrorCode::kUnavailable,
      fmt::format("cannot give the container GPU {}: {}{}; the engine has no runtime '{}'. {}",
                  fmt::join(input.gpu_uuids, ", "), reasons, *closed, kNvidiaRuntime,
                  input.engine_name == kPodmanName ? kPodmanRemedy : kRemedy));
}

void wire_no_gpu(ports::ContainerSpec& spec) {
  set_environment(spec, kVisibleDevices, kNoDevices);
}

CdiGpuWiring::CdiGpuWiring(std::string cdi_dir) : cdi_dir_(std::move(cdi_dir)) {}

Status CdiGpuWiring::wire(const ports::EngineInfo& engine,
                          const std::vector<std::string>& gpu_uuids,
                          ports::ContainerSpec& spec) const {
  if (gpu_uuids.empty()) {
    wire_no_gpu(spec);
    return {};
  }
  GpuWiringInput input{engine.cdi_spec_dirs,
                       engine.runtimes,
                       cdi_dir_,
                       gpu_uuids,
                       fail(ErrorCode::kNotFound, "the agent has no CDI folder (--cdi-dir)"),
                       engine.name};
  if (!cdi_dir_.empty()) {
    input.edits = CdiRegistry::load(cdi_dir_).and_then(
        [&](const CdiRegistry& registry) { return registry.resolve(kNvidiaCdiKind, gpu_uuids); });
  }
  return wire_gpus(input, spec);
}

}  // namespace cotenant::adapters
