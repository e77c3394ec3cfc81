#include "adapters/process_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "adapters/process_user.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Status;
using ports::EnvironmentVariable;
using ports::Mount;

constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}
std::string folder_of(std::string_view path) {
  return std::string(path.substr(0, path.rfind('/')));
}

bool is_library(const Mount& mount) {
  return file_name(mount.source).find(".so") != std::string_view::npos;
}

// Where the folder `folder` of the container lies on the host, going by this mount; empty: it does not
// say.
std::string host_folder(const std::string& folder, const Mount& mount) {
  if (is_library(mount) || !mount.target.starts_with(folder)) return "";
  const std::string_view below = std::string_view(mount.target).substr(folder.size());
  if (!below.empty() && below.front() != '/') return "";
  if (!mount.source.ends_with(below)) return "";
  return mount.source.substr(0, mount.source.size() - below.size());
}

void follow_mounts(const std::vector<Mount>& mounts, EnvironmentVariable& variable) {
  if (variable.value.size() < 2 || variable.value.front() != '/') return;
  std::set<std::string> candidates;
  for (const Mount& mount : mounts) {
    const std::string on_host = host_folder(variable.value, mount);
    if (!on_host.empty()) candidates.insert(on_host);
  }
  if (candidates.size() == 1) variable.value = *candidates.begin();
}

void find_libraries(const std::vector<Mount>& mounts, ports::ContainerSpec& spec) {
  std::vector<std::string> folders;
  for (const Mount& mount : mounts) {
    const std::string folder = folder_of(mount.source);
    const bool known = std::find(folders.begin(), folders.end(), folder) != folders.end();
    if (is_library(mount) && !known && file_name(mount.source) == file_name(mount.target)) {
      folders.push_back(folder);
    }
  }
  if (folders.empty()) return;
  // What the definition asks for comes after: the driver's library must be the driver's.
  const auto own = std::find_if(spec.environment.begin(), spec.environment.end(),
                                [](const auto& variable) { return variable.name == kLibraryPath; });
  if (own != spec.environment.end() && !own->value.empty()) folders.push_back(own->value);
  std::string value;
  for (const std::string& folder : folders) value += (value.empty() ? "" : ":") + folder;
  set_environment(spec, kLibraryPath, value);
}

Status refuse_member(std::string_view member, std::string_view text) {
  return fail(ErrorCode::kClient, fmt::format("{}: {}", member, text));
}

// The platform's mounts that lie elsewhere on the host.
base::Result<std::vector<Mount>> moved_mounts(const ports::ContainerSpec& spec) {
  std::vector<Mount> moved;
  for (const Mount& mount : spec.mounts) {
    if (mount.source == mount.target) continue;
    if (mount.make_source) {
      return fail(
          ErrorCode::kClient,
          fmt::format("mountPoints: a process sees the host's {} only at that path, not at {}",
                      mount.source, mount.target));
    }
    moved.push_back(mount);
  }
  return moved;
}

Status check_expressible(const ports::ContainerSpec& spec) {
  if (!spec.volume_mounts.empty()) return refuse_member("mountPoints", "there are no volumes");
  if (!spec.volumes_from.empty()) return refuse_member("volumesFrom", "there are no volumes");
  if (!spec.links.empty()) return refuse_member("links", "there are no links");
  if (!spec.namespace_holder.empty()) {
    return refuse_member("networkMode, pidMode or ipcMode", "there are no namespaces");
  }
  if (!spec.cdi_devices.empty() || !spec.runtime.empty()) {
    return refuse_member("resourceRequirements", "there is no engine that could inject devices");
  }
  return {};
}

// "10m": as Docker's json-file takes it.
base::Result<std::int64_t> log_option(const core::LogSettings& log, const std::string& name,
                                      std::int64_t fallback, std::int64_t maximum) {
  const auto found = log.options.find(name);
  if (found == log.options.end()) return fallback;
  std::int64_t value = 0;
  const std::string& text = found->second;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(at, static_cast<std::size_t>(text.data() + text.size() - at));
  std::int64_t factor = unit.empty() ? 1 : 0;
  if (unit == "k") factor = 1024;
  if (unit == "m") factor = 1024 * 1024;
  if (unit == "g") factor = 1024 * 1024 * 1024;
  if (error != std::errc() || factor == 0 || value < 1 || value > maximum / factor) {
    return fail(
        ErrorCode::kClient,
        fmt::format("logConfiguration.options.{}: '{}' is not a number of 1 to {}, with k, m "
                    "or g behind it",
                    name, text, maximum));
  }
  return value * factor;
}

Status plan_log(const ports::ContainerSpec& spec, ProcessConfig& config) {
  if (!spec.host.log || spec.host.log->driver != "json-file") return {};
  const auto bytes =
      log_option(*spec.host.log, "max-size", config.log_bytes, std::int64_t{1} << 40);
  if (!bytes) return fail(bytes.error());
  const auto files = log_option(*spec.host.log, "max-file", config.log_files, 100);
  if (!files) return fail(files.error());
  config.log_bytes = *bytes;
  config.log_files = *files;
  return {};
}

void add_default(ProcessConfig& config, const char* name, const std::string& value) {
  const bool known =
      std::any_of(config.environment.begin(), config.environment.end(),
                  [&](const EnvironmentVariable& variable) { return variable.name == name; });
  if (!known) config.environment.push_back({name, value});
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

base::Result<ProcessConfig> plan_process(const ports::ContainerSpec& given) {
  ports::ContainerSpec spec = given;
  if (Status good = check_expressible(spec); !good) return fail(good.error());
  const base::Result<std::vector<Mount>> moved = moved_mounts(spec);
  if (!moved) return fail(moved.error());
  for (EnvironmentVariable& variable : spec.environment) follow_mounts(*moved, variable);
  find_libraries(*moved, spec);

  ProcessConfig config;
  config.name = spec.name;
  config.image = spec.image;
  config.labels = spec.labels;
  config.program = spec.entry_point;
  config.program.insert(config.program.end(), spec.command.begin(), spec.command.end());
  if (config.program.empty()) {
    return fail(ErrorCode::kClient,
                "entryPoint, command: one of them must name a program of this machine: without an "
                "engine the image's own is not known");
  }
  config.environment = spec.environment;
  if (!spec.working_directory.empty()) config.working_directory = spec.working_directory;
  config.keep_stdin = spec.host.interactive;
  if (Status planned = plan_log(spec, config); !planned) return fail(planned.error());
  const auto user = find_process_user(spec.host.user);
  if (!user) return fail(user.error());
  config.user = user->change;
  const auto limits = process_limits(spec.host.ulimits);
  if (!limits) return fail(limits.error());
  config.limits = *limits;
  for (const core::PortMapping& port : spec.ports) {
    config.bindings.push_back({"0.0.0.0", port.container_port, port.host_port, port.protocol});
  }
  std::sort(config.bindings.begin(), config.bindings.end());
  add_default(config, "PATH", kDefaultPath);
  add_default(config, "HOME", user->home);
  add_default(config, "HOSTNAME", host_name());
  return config;
}

}  // namespace cotenant::adapters
