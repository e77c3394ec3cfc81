#include "core/tenant_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace cotenant::core {
namespace {

using base::Status;

constexpr std::string_view kWhy =
    "is not possible in a task that shares a GPU, because it opens the host, and so the other "
    "tenants, to the container";

// The kernel's interfaces, the engine's and cotenant's folders. A folder above one of them contains
// it.
constexpr std::array<std::string_view, 12> kCritical = {"/proc",
                                                        "/sys",
                                                        "/dev",
                                                        "/run",
                                                        "/var/run",
                                                        "/var/lib/docker",
                                                        "/var/lib/containerd",
                                                        "/var/lib/cotenant",
                                                        "/boot",
                                                        "/root",
                                                        "/usr",
                                                        "/lib"};

// Linux capabilities beyond Docker's default that let a process out of its container or at its
// neighbours'. Source: capabilities(7).
constexpr std::array<std::string_view, 13> kCapabilities = {
    "ALL",      "SYS_ADMIN", "SYS_PTRACE",      "SYS_MODULE", "SYS_RAWIO",
    "SYS_BOOT", "SYSLOG",    "DAC_READ_SEARCH", "NET_ADMIN",  "SYS_RESOURCE",
    "BPF",      "PERFMON",   "MAC_ADMIN"};

Status invalid(std::string_view member, std::string_view text) {
  return base::fail(base::ErrorCode::kInvalidParameter, fmt::format("{}: {}", member, text));
}

bool has_prefix(const std::string& path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

// An absolute path without ".", ".." and doubled slashes.
std::string normal_path(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    const std::string_view part = text.substr(0, slash);
    text.remove_prefix(std::min(slash + 1, text.size()));
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (part != ".." && part != "." && !part.empty()) parts.push_back(part);
  }
  std::string path;
  for (const std::string_view part : parts) path.append("/").append(part);
  return path.empty() ? "/" : path;
}

Status check_tenant_container(const ContainerDefinition& container, const std::string& path) {
  const HostSettings& host = container.host;
  if (host.privileged) return invalid(path + "privileged", kWhy);
  if (!host.devices.empty()) return invalid(path + "linuxParameters.devices[0]", kWhy);
  for (std::size_t i = 0; i < host.capabilities_added.size(); ++i) {
    std::string_view name = host.capabilities_added[i];
    if (name.starts_with("CAP_")) name.remove_prefix(4);
    if (std::find(kCapabilities.begin(), kCapabilities.end(), name) != kCapabilities.end()) {
      return invalid(fmt::format("{}linuxParameters.capabilities.add[{}]", path, i),
                     fmt::format("{} {}", name, kWhy));
    }
  }
  for (std::size_t i = 0; i < host.security_options.size(); ++i) {
    const std::string& option = host.security_options[i];
    const bool loosens = option.find("unconfined") != std::string::npos ||
                         option.find("disable") != std::string::npos ||
                         option.find("no-new-privileges:false") != std::string::npos;
    if (loosens) return invalid(fmt::format("{}dockerSecurityOptions[{}]", path, i), kWhy);
  }
  return {};
}

}  // namespace

bool is_host_critical(std::string_view text) {
  const std::string path = normal_path(text);
  return path == "/" ||
         std::any_of(kCritical.begin(), kCritical.end(), [&](std::string_view known) {
           return has_prefix(path, known) || has_prefix(std::string(known), path);
         });
}

Status check_tenant(const TaskDefinition& definition) {
  const TaskSettings& settings = definition.settings;
  if (settings.pid_mode == NamespaceMode::kHost) return invalid("pidMode", kWhy);
  if (settings.ipc_mode == NamespaceMode::kHost) return invalid("ipcMode", kWhy);
  for (std::size_t i = 0; i < settings.volumes.size(); ++i) {
    const Volume& volume = settings.volumes[i];
    const std::string path = fmt::format("volumes[{}].", i);
    if (!volume.driver_options.empty()) {
      return invalid(path + "dockerVolumeConfiguration.driverOpts",
                     "is not possible in a task that shares a GPU: it can mount any folder of the "
                     "host; use host.sourcePath");
    }
    if (volume.kind == Volume::Kind::kHostPath && is_host_critical(volume.host_path)) {
      return invalid(path + "host.sourcePath", fmt::format("{} {}", volume.host_path, kWhy));
    }
  }
  for (std::size_t i = 0; i < definition.containers.size(); ++i) {
    const std::string path = fmt::format("containerDefinitions[{}].", i);
    if (auto status = check_tenant_container(definition.containers[i], path); !status)
      return status;
  }
  return {};
}

}  // namespace cotenant::core
