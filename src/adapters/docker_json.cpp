#include "adapters/docker_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "adapters/docker_settings.h"
#include "adapters/podman_create.h"
#include "base/rfc3339.h"
#include "base/units.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using codec::Json;

// Above any machine, and far from overflow when turned into bytes.
constexpr std::int64_t kMemoryMibMax = std::int64_t{1} << 30;
// ECS agent: 0 and 1 CPU unit become 2 shares, the least the kernel takes; more than 256 vCPU
// become 262144, the most it takes. (ECS developer guide, task definition parameters, "cpu".)
constexpr std::int64_t kCpuSharesMin = 2;
constexpr std::int64_t kCpuSharesMax = 262144;
// podman-run(1), --device: CDI's own default folders. Newer ones can be told others (containers.conf,
// cdi_spec_dirs), which no call shows.
constexpr std::array<const char*, 2> kPodmanCdiDirs = {"/etc/cdi", "/var/run/cdi"};

tl::unexpected<base::Error> protocol(std::string_view what, std::string_view wanted) {
  return fail(ErrorCode::kProtocol, fmt::format("the engine's answer: {} is not {}", what, wanted));
}

tl::unexpected<base::Error> unknown_state(std::string_view member, std::string_view state) {
  return protocol(fmt::format("{} '{:.64}'", member, state), "a container state that is known");
}

Json strings(const std::vector<std::string>& values) {
  Json array = Json::array();
  for (const std::string& value : values) array.push(value);
  return array;
}

// "1.41" -> 41.
Result<int> api_minor(const Json& body, std::string_view member) {
  const std::string text = body.string_or(member, "");
  int minor = 0;
  const char* end = text.data() + text.size();
  if (!text.starts_with("1.") || text.size() < 3) return protocol(member, "of the form 1.41");
  const auto [stop, error] = std::from_chars(text.data() + 2, end, minor);
  if (error != std::errc() || stop != end) return protocol(member, "of the form 1.41");
  return minor;
}

std::string_view network_mode_name(ports::NetworkMode mode) {
  switch (mode) {
    case ports::NetworkMode::kBridge:
      return "bridge";
    case ports::NetworkMode::kHost:
      return "host";
    case ports::NetworkMode::kNone:
      return "none";
    case ports::NetworkMode::kAwsvpc:
      break;  // docker_settings.cpp
  }
  return "none";
}

// The mistakes that the engine would take silently for something else, or report unclearly.
base::Status check_spec(const ports::ContainerSpec& spec, int api_minor) {
  const auto bad = [&](std::string text) {
    return fail(ErrorCode::kClient, fmt::format("container '{}': {}", spec.name, text));
  };
  if (spec.name.empty()) return bad("name: must not be empty");
  if (spec.image.empty()) return bad("image: must not be empty");
  for (std::size_t i = 0; i < spec.environment.size(); ++i) {
    const std::string& name = spec.environment[i].name;
    if (name.empty() || name.find('=') != std::string::npos) {
      return bad(
          fmt::format("environment[{}].name: '{}' must be non-empty and without '='", i, name));
    }
  }
  for (const auto& [member, value] :
       {std::pair{"memory_mib", spec.memory_mib},
        std::pair{"memory_reservation_mib", spec.memory_reservation_mib}}) {
    if (value < 0 || value > kMemoryMibMax) {
      return bad(fmt::format("{}: {} is not in 0..{}", member, value, kMemoryMibMax));
    }
  }
  if (spec.cpu_units < 0) return bad(fmt::format("cpu_units: {} is negative", spec.cpu_units));
  // Older engines refuse this only at the start, and Podman ignores it: a GPU would be missing.
  if (!spec.cdi_devices.empty() && api_minor < kDockerApiCdi) {
    return bad(
        fmt::format("cdi_devices: the engine's API 1.{} knows no CDI; Docker 25 (API 1.{}) or "
                    "newer is needed",
                    api_minor, kDockerApiCdi));
  }
  return {};
}

Json host_config(const ports::ContainerSpec& spec) {
  Json host = Json::object();
  host.set("CpuShares", std::clamp(spec.cpu_units, kCpuSharesMin, kCpuSharesMax));
  if (spec.memory_mib > 0) host.set("Memory", spec.memory_mib * base::kBytesPerMib);
  if (spec.memory_reservation_mib > 0) {
    host.set("MemoryReservation", spec.memory_reservation_mib * base::kBytesPerMib);
  }
  host.set("NetworkMode", network_mode_name(spec.network_mode));
  if (!spec.cdi_devices.empty()) {
    host.set("DeviceRequests", Json::array().push(Json::object(
                                   {{"Driver", "cdi"}, {"DeviceIDs", strings(spec.cdi_devices)}})));
  }
  if (!spec.runtime.empty()) host.set("Runtime", spec.runtime);
  return host;
}

// The engine's states (and Podman's two more) as the port's three phases. A paused container still
// holds its resources; a restarting one is about to.
std::optional<ports::ContainerPhase> phase_of(std::string_view state) {
  using ports::ContainerPhase;
  static constexpr std::array<std::pair<std::string_view, ContainerPhase>, 11> kPhases = {{
      {"created", ContainerPhase::kCreated},
      {"initialized", ContainerPhase::kCreated},
      {"running", ContainerPhase::kRunning},
      {"paused", ContainerPhase::kRunning},
      {"restarting", ContainerPhase::kRunning},
      {"stopping", ContainerPhase::kRunning},
      {"removing", ContainerPhase::kStopped},
      {"exited", ContainerPhase::kStopped},
      {"stopped", ContainerPhase::kStopped},
      {"dead", ContainerPhase::kStopped},
      {"configured", ContainerPhase::kCreated},
  }};
  for (const auto& [name, phase] : kPhases) {
    if (name == state) return phase;
  }
  return std::nullopt;
}

// "Exited (137) 2 minutes ago" -> 137.
std::optional<int> exit_code_of(std::string_view status) {
  constexpr std::string_view kPrefix = "Exited (";
  if (!status.starts_with(kPrefix)) return std::nullopt;
  status.remove_prefix(kPrefix.size());
  int code = 0;
  const auto [end, error] = std::from_chars(status.data(), status.data() + status.size(), code);
  if (error != std::errc() || end == status.data() + status.size() || *end != ')') {
    return std::nullopt;
  }
  return code;
}

std::string without_slash(std::string name) {
  if (name.starts_with('/')) name.erase(0, 1);
  return name;
}

base::Status read_labels(const Json* labels, std::map<std::string, std::string>& out) {
  if (labels == nullptr) return {};
  if (!labels->is_object()) return protocol("Labels", "an object");
  for (const Json::Member& label : labels->as_object()) {
    if (!label.value.is_string()) return protocol("Labels." + label.name, "a string");
    out.emplace(label.name, label.value.as_string());
  }
  return {};
}

Result<base::TimeMs> read_time(const Json& state, std::string_view member) {
  const std::string text = state.string_or(member, "");
  if (text.empty()) return 0;
  Result<base::TimeMs> time = base::parse_rfc3339(text);
  if (!time) return protocol(fmt::format("State.{}", member), "an RFC 3339 time");
  return time;
}

// "registry:5000/team/model:v1" or "...@sha256:..." without tag and digest.
std::string_view repository_of(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const std::size_t slash = image.rfind('/');
  const std::size_t colon = image.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    image = image.substr(0, colon);
  }
  return image;
}

}  // namespace

Result<DockerVersion> parse_docker_version(const Json& body) {
  DockerVersion version;
  version.version = body.string_or("Version", "");
  version.name = "Docker Engine";
  const Json::Array& components = body.array_or_empty("Components");
  // Docker calls itself "Engine" here, Podman "Podman Engine".
  if (!components.empty()) {
    const std::string name = components.front().string_or("Name", "Engine");
    if (name != "Engine") version.name = name;
  }
  const Result<int> newest = api_minor(body, "ApiVersion");
  if (!newest) return fail(newest.error());
  const Result<int> oldest = api_minor(body, "MinAPIVersion");
  if (!oldest) return fail(oldest.error());
  version.api_minor = std::min(*newest, kDockerApiMax);
  if (*newest < kDockerApiMin) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("{} {} speaks API 1.{}; 1.{} (Docker 20.10) or newer is needed",
                            version.name, version.version, *newest, kDockerApiMin));
  }
  if (*oldest > kDockerApiMax) {
    return fail(ErrorCode::kUnavailable,
                fmt::format("{} {} speaks only API 1.{} and newer; this cotenant speaks up to 1.{}",
                            version.name, version.version, *oldest, kDockerApiMax));
  }
  return version;
}

Result<ports::EngineInfo> parse_docker_info(const DockerVersion& version, const Json& info,
                                            const Json& networks) {
  if (!info.is_object()) return protocol("/info", "an object");
  if (!networks.is_array()) return protocol("/networks", "an array");
  ports::EngineInfo engine;
  engine.name = version.name;
  engine.version = version.version;
  engine.cpu_count = info.integer_or("NCPU", 0);
  engine.memory_mib = info.integer_or("MemTotal", 0) / base::kBytesPerMib;
  if (engine.cpu_count <= 0) return protocol("/info NCPU", "a positive integer");
  if (engine.memory_mib <= 0) return protocol("/info MemTotal", "a positive integer");
  for (const Json& dir : info.array_or_empty("CDISpecDirs")) {
    if (!dir.is_string()) return protocol("/info CDISpecDirs", "an array of strings");
    engine.cdi_spec_dirs.push_back(dir.as_string());
  }
  if (const Json* runtimes = info.find("Runtimes"); runtimes != nullptr && runtimes->is_object()) {
    for (const Json::Member& runtime : runtimes->as_object()) {
      engine.runtimes.push_back(runtime.name);
    }
  }
  if (version.name == kPodmanName) {
    // Podman does not tell where it looks, and lists runtimes that its Docker-compatible creation
    // does not use.
    engine.cdi_spec_dirs.assign(kPodmanCdiDirs.begin(), kPodmanCdiDirs.end());
    engine.runtimes.clear();
  }
  for (const Json& network : networks.as_array()) {
    const std::string name = network.string_or("Name", "");
    // Podman's default bridge is called "podman".
    if (network.string_or("Driver", "") == "bridge" && (name == "bridge" || name == "podman")) {
      engine.has_bridge = true;
    }
  }
  return engine;
}

Result<Json> docker_create_body(const ports::ContainerSpec& spec, int api_minor) {
  if (base::Status ok = check_spec(spec, api_minor); !ok) return fail(ok.error());
  Json body = Json::object({{"Image", spec.image}});
  // An absent member means the image's own.
  if (!spec.entry_point.empty()) body.set("Entrypoint", strings(spec.entry_point));
  if (!spec.command.empty()) body.set("Cmd", strings(spec.command));
  if (!spec.working_directory.empty()) body.set("WorkingDir", spec.working_directory);
  Json environment = Json::array();
  for (const ports::EnvironmentVariable& variable : spec.environment) {
    environment.push(variable.name + "=" + variable.value);
  }
  body.set("Env", std::move(environment));
  Json labels = Json::object();
  for (const auto& [name, value] : spec.labels) labels.set(name, value);
  body.set("Labels", std::move(labels));
  Json host = host_config(spec);
  set_docker_settings(spec, body, host);
  body.set("HostConfig", std::move(host));
  return body;
}

Result<ports::ContainerState> parse_docker_list_entry(const Json& entry) {
  ports::ContainerState state;
  state.id = entry.string_or("Id", "");
  if (state.id.empty()) return protocol("Id", "a non-empty string");
  const Json::Array& names = entry.array_or_empty("Names");
  if (!names.empty() && names.front().is_string()) {
    state.name = without_slash(names.front().as_string());
  }
  state.image = entry.string_or("Image", "");
  state.image_digest = entry.string_or("ImageID", "");
  if (base::Status ok = read_labels(entry.find("Labels"), state.labels); !ok) {
    return fail(ok.error());
  }
  const std::optional<ports::ContainerPhase> phase = phase_of(entry.string_or("State", ""));
  if (!phase) return unknown_state("State", entry.string_or("State", ""));
  state.phase = *phase;
  if (state.phase == ports::ContainerPhase::kStopped) {
    state.exit_code = exit_code_of(entry.string_or("Status", ""));
  }
  return state;
}

Result<ports::ContainerState> parse_docker_inspect(const Json& body) {
  ports::ContainerState result;
  result.id = body.string_or("Id", "");
  if (result.id.empty()) return protocol("Id", "a non-empty string");
  result.name = without_slash(body.string_or("Name", ""));
  result.image_digest = body.string_or("Image", "");
  const Json* config = body.find("Config");
  if (config == nullptr || !config->is_object()) return protocol("Config", "an object");
  result.image = config->string_or("Image", "");
  if (base::Status ok = read_labels(config->find("Labels"), result.labels); !ok) {
    return fail(ok.error());
  }
  const Json* state = body.find("State");
  if (state == nullptr || !state->is_object()) return protocol("State", "an object");
  const std::optional<ports::ContainerPhase> phase = phase_of(state->string_or("Status", ""));
  if (!phase) return unknown_state("State.Status", state->string_or("Status", ""));
  result.phase = *phase;
  result.oom_killed = state->bool_or("OOMKilled", false);
  const Result<base::TimeMs> started = read_time(*state, "StartedAt");
  if (!started) return fail(started.error());
  const Result<base::TimeMs> finished = read_time(*state, "FinishedAt");
  if (!finished) return fail(finished.error());
  result.started_at_ms = *started;
  result.health = parse_docker_health(*state);
  if (result.phase == ports::ContainerPhase::kRunning) {
    result.bindings = parse_docker_bindings(body);
    result.address = parse_docker_address(body);
    return result;
  }

  result.finished_at_ms = *finished;
  result.error = state->string_or("Error", "");
  if (!result.error.empty()) {
    result.phase = ports::ContainerPhase::kStopped;
  } else if (result.phase == ports::ContainerPhase::kStopped && result.started_at_ms != 0) {
    const Json* code = state->find("ExitCode");
    if (code == nullptr || !code->is_integer() || !std::in_range<int>(code->as_integer())) {
      return protocol("State.ExitCode", "an integer");
    }
    result.exit_code = static_cast<int>(code->as_integer());
  }
  return result;
}

std::optional<std::string> docker_repo_digest(const Json& body, std::string_view image) {
  std::optional<std::string> first;
  for (const Json& entry : body.array_or_empty("RepoDigests")) {
    if (!entry.is_string()) continue;
    const std::string_view text = entry.as_string();
    const std::size_t at = text.find('@');
    if (at == std::string_view::npos) continue;
    const std::string digest(text.substr(at + 1));
    if (repository_of(text) == repository_of(image)) return digest;
    if (!first) first = digest;
  }
  return first;
}

std::string docker_label_filter(const std::string& label, const std::string& value) {
  return Json::object({{"label", Json::array().push(label + "=" + value)}}).dump();
}

std::string docker_volume_filter(const std::string& label, const std::string& value) {
  return Json::object({{"dangling", Json::array().push("true")},
                       {"label", Json::array().push(label + "=" + value)}})
      .dump();
}

std::string docker_event_filter(const std::string& label, const std::string& value) {
  return Json::object({{"type", Json::array().push("container")},
                       {"label", Json::array().push(label + "=" + value)}})
      .dump();
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    if (unreserved) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace cotenant::adapters
