#include "codec/agent_message.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "base/ids.h"
#include "base/limits.h"
#include "codec/json.h"
#include "codec/json_members.h"
#include "codec/json_reader.h"
#include "codec/registration_json.h"
#include "codec/settings_json.h"
#include "codec/task_json.h"
#include "codec/utf8.h"

namespace cotenant::codec {
namespace {

namespace limits = base::limits;
using base::ErrorCode;
using base::fail;
using base::Result;
using core::ContainerDefinition;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kIntMax = std::numeric_limits<int>::max();
constexpr std::int64_t kIntMin = std::numeric_limits<int>::min();

Json observations_json(const std::vector<core::TaskObservation>& tasks) {
  Json array = Json::array();
  for (const core::TaskObservation& task : tasks) {
    Json containers = Json::array();
    for (const core::ContainerObservation& container : task.containers) {
      Json json = Json::object();
      json.set("name", container.name);
      json.set("status", core::to_string(container.status));
      if (container.exit_code) json.set("exitCode", *container.exit_code);
      set_text(json, "reason", valid_utf8(container.reason));
      set_text(json, "runtimeId", container.runtime_id);
      set_text(json, "imageDigest", container.image_digest);
      if (container.health != core::HealthStatus::kUnknown) {
        json.set("health", core::to_string(container.health));
      }
      if (!container.bindings.empty()) json.set("bindings", encode_bindings(container.bindings));
      set_text(json, "address", container.address);
      containers.push(std::move(json));
    }
    Json json = Json::object();
    json.set("taskId", task.task_id);
    json.set("containers", std::move(containers));
    set_number(json, "pullStartedAtMs", task.pull_started_at_ms);
    set_number(json, "pullStoppedAtMs", task.pull_stopped_at_ms);
    array.push(std::move(json));
  }
  return array;
}

Json gpu_request_json(const core::GpuRequest& request) {
  Json json = Json::object();
  if (const auto* whole = std::get_if<core::WholeGpus>(&request)) {
    Json part = Json::object();
    if (whole->all) {
      part.set("all", true);
    } else {
      part.set("count", whole->count);
    }
    json.set("whole", std::move(part));
  } else if (const auto* shared = std::get_if<core::SharedGpu>(&request)) {
    Json part = Json::object();
    part.set("memoryMib", shared->memory_mib);
    if (shared->compute_percent) part.set("computePercent", *shared->compute_percent);
    json.set("shared", std::move(part));
  }
  return json;
}

Json definition_json(const ContainerDefinition& definition) {
  Json json = Json::object();
  json.set("name", definition.name);
  json.set("image", definition.image);
  set_number(json, "cpuUnits", definition.cpu_units);
  if (definition.memory_mib) json.set("memoryMib", *definition.memory_mib);
  if (definition.memory_reservation_mib) {
    json.set("memoryReservationMib", *definition.memory_reservation_mib);
  }
  json.set("essential", definition.essential);
  set_array(json, "entryPoint", definition.entry_point);
  set_array(json, "command", definition.command);
  if (!definition.environment.empty()) {
    json.set("environment", encode_environment(definition.environment));
  }
  set_text(json, "workingDirectory", definition.working_directory);
  if (definition.stop_timeout_s) json.set("stopTimeoutS", *definition.stop_timeout_s);
  set_map(json, "dockerLabels", definition.docker_labels);
  if (!std::holds_alternative<core::NoGpu>(definition.gpu)) {
    json.set("gpu", gpu_request_json(definition.gpu));
  }
  Json settings = Json::object();
  write_container_settings(definition, settings);
  if (!settings.as_object().empty()) json.set("settings", std::move(settings));
  return json;
}

Json desired_task_json(const core::DesiredTask& task) {
  Json json = Json::object();
  json.set("taskId", task.task_id);
  json.set("family", task.family);
  json.set("revision", task.revision);
  json.set("networkMode", core::to_string(task.network_mode));
  Json settings = Json::object();
  write_task_settings(task.settings, settings);
  if (!settings.as_object().empty()) json.set("settings", std::move(settings));
  if (task.stop) json.set("stop", true);
  Json containers = Json::array();
  for (const core::DesiredContainer& container : task.containers) {
    Json part = Json::object();
    part.set("id", container.id);
    part.set("definition", definition_json(container.definition));
    set_array(part, "gpuUuids", container.gpu_uuids);
    if (container.started) part.set("started", true);
    containers.push(std::move(part));
  }
  json.set("containers", std::move(containers));
  return json;
}

// --- Decoding ---

void read_binding(JsonReader reader, std::vector<core::NetworkBinding>& bindings) {
  core::NetworkBinding binding;
  binding.bind_ip = reader.text("bindIP", false, limits::kNameChars);
  binding.container_port =
      static_cast<int>(reader.number("containerPort", true, 1, 65535).value_or(0));
  binding.host_port = static_cast<int>(reader.number("hostPort", true, 1, 65535).value_or(0));
  const std::string protocol = reader.text("protocol", true);
  if (const auto parsed = core::parse_protocol(protocol)) {
    binding.protocol = *parsed;
  } else {
    reader.refuse(
        fmt::format("{}: '{}' must be tcp or udp", reader.at("protocol"), shortened(protocol)));
  }
  bindings.push_back(std::move(binding));
}

core::ContainerObservation read_container_observation(JsonReader reader) {
  core::ContainerObservation container;
  container.name = reader.name("name");
  const std::string status = reader.text("status", true);
  if (const auto parsed = core::parse_container_status(status)) {
    container.status = *parsed;
  } else {
    reader.refuse(fmt::format("{}: '{}' must be PENDING, RUNNING or STOPPED", reader.at("status"),
                              shortened(status)));
  }
  if (const auto code = reader.number("exitCode", false, kIntMin, kIntMax)) {
    container.exit_code = static_cast<int>(*code);
  }
  container.reason = reader.text("reason", false);
  container.runtime_id = reader.text("runtimeId", false, limits::kNameChars);
  container.image_digest = reader.text("imageDigest", false, limits::kNameChars);
  container.health = core::parse_health_status(reader.text("health", false))
                         .value_or(core::HealthStatus::kUnknown);
  container.address = reader.text("address", false, limits::kNameChars);
  reader.each("bindings", false, limits::kPortsPerContainer,
              [&](const Json& element, const std::string& path) {
                read_binding(JsonReader(element, path, reader.error()), container.bindings);
              });
  return container;
}

std::vector<core::TaskObservation> read_observations(JsonReader& frame, std::string_view member) {
  std::vector<core::TaskObservation> tasks;
  frame.each(
      member, true, JsonReader::kManyElements, [&](const Json& element, const std::string& path) {
        JsonReader reader(element, path, frame.error());
        core::TaskObservation task;
        task.task_id = reader.name("taskId");
        reader.each("containers", true, limits::kContainersPerTask,
                    [&](const Json& part, const std::string& at) {
                      task.containers.push_back(
                          read_container_observation(JsonReader(part, at, frame.error())));
                    });
        task.pull_started_at_ms = reader.number("pullStartedAtMs", false, 0, kInt64Max).value_or(0);
        task.pull_stopped_at_ms = reader.number("pullStoppedAtMs", false, 0, kInt64Max).value_or(0);
        tasks.push_back(std::move(task));
      });
  return tasks;
}

// An unknown kind is refused: a lost member would mean other GPUs than asked for.
core::GpuRequest read_gpu_request(const Json& json, const std::string& path, JsonReader& owner) {
  JsonReader reader(json, path, owner.error());
  const Json* whole_json = reader.object("whole", false);
  const Json* shared_json = reader.object("shared", false);
  if ((whole_json == nullptr) == (shared_json == nullptr)) {
    reader.refuse(path + ": must have exactly one of whole and shared");
    return core::NoGpu{};
  }
  if (whole_json != nullptr) {
    JsonReader part(*whole_json, path + ".whole", owner.error());
    core::WholeGpus whole;
    whole.all = part.flag("all", false);
    const auto count = part.number("count", !whole.all, 1, limits::kWholeGpusMax);
    if (!whole.all) whole.count = static_cast<int>(count.value_or(0));
    return whole;
  }
  JsonReader part(*shared_json, path + ".shared", owner.error());
  core::SharedGpu shared;
  shared.memory_mib = part.number("memoryMib", true, 1, limits::kGpuMemoryMibMax).value_or(0);
  if (const auto percent = part.number("computePercent", false, 1, 100)) {
    shared.compute_percent = static_cast<int>(*percent);
  }
  return shared;
}

ContainerDefinition read_definition(JsonReader reader) {
  ContainerDefinition definition;
  definition.name = reader.name("name");
  definition.image = reader.text("image", true);
  definition.cpu_units = reader.number("cpuUnits", false, 0, kInt64Max).value_or(0);
  definition.memory_mib = reader.number("memoryMib", false, 0, kInt64Max);
  definition.memory_reservation_mib = reader.number("memoryReservationMib", false, 0, kInt64Max);
  definition.essential = reader.flag("essential", true);
  definition.entry_point = reader.texts("entryPoint");
  definition.command = reader.texts("command");
  reader.each("environment", false, JsonReader::kManyElements,
              [&](const Json& element, const std::string& path) {
                JsonReader variable(element, path, reader.error());
                std::string name = variable.text("name", true);
                std::string value = variable.text("value", false);
                definition.environment.push_back({std::move(name), std::move(value)});
              });
  definition.working_directory = reader.text("workingDirectory", false);
  definition.stop_timeout_s =
      reader.number("stopTimeoutS", false, 0, limits::kStopTimeoutSecondsMax);
  definition.docker_labels = reader.text_map("dockerLabels");
  if (const Json* gpu = reader.object("gpu", false)) {
    definition.gpu = read_gpu_request(*gpu, reader.at("gpu"), reader);
  }
  if (const Json* settings = reader.object("settings", false)) {
    read_container_settings(*settings, definition);
  }
  return definition;
}

core::DesiredTask read_desired_task(JsonReader reader) {
  core::DesiredTask task;
  task.task_id = reader.name("taskId");
  task.family = reader.name("family");
  task.revision = reader.number("revision", true, 1, kInt64Max).value_or(0);
  const std::string mode = reader.text("networkMode", true);
  if (const auto parsed = core::parse_network_mode(mode)) {
    task.network_mode = *parsed;
  } else {
    reader.refuse(fmt::format("{}: '{}' must be bridge, host, none or awsvpc",
                              reader.at("networkMode"), shortened(mode)));
  }
  if (const Json* settings = reader.object("settings", false)) {
    task.settings = read_task_settings(*settings);
  }
  task.stop = reader.flag("stop", false);
  reader.each("containers", true, limits::kContainersPerTask,
              [&](const Json& element, const std::string& path) {
                JsonReader part(element, path, reader.error());
                core::DesiredContainer container;
                container.id = part.name("id");
                if (const Json* definition = part.object("definition", true)) {
                  container.definition = read_definition(
                      JsonReader(*definition, part.at("definition"), reader.error()));
                }
                container.gpu_uuids = part.texts("gpuUuids");
                container.started = part.flag("started", false);
                task.containers.push_back(std::move(container));
              });
  return task;
}

AgentHello read_hello(JsonReader& frame) {
  AgentHello hello;
  hello.protocol = static_cast<int>(frame.number("protocol", true, 1, kIntMax).value_or(0));
  hello.boot_id = frame.text("bootId", false, limits::kNameChars);
  hello.epoch = frame.number("epoch", true, 0, kInt64Max).value_or(0);
  if (const Json* registration = frame.object("registration", true)) {
    hello.registration =
        read_registration(JsonReader(*registration, "registration", frame.error()));
  }
  hello.observed = read_observations(frame, "observed");
  hello.running = frame.texts("running");
  return hello;
}

AgentObserved read_observed(JsonReader& frame) {
  AgentObserved observed;
  observed.seq = frame.number("seq", true, 0, kInt64Max).value_or(0);
  observed.tasks = read_observations(frame, "tasks");
  return observed;
}

ServerDesired read_desired(JsonReader& frame) {
  ServerDesired desired;
  desired.revision = frame.number("revision", true, 0, kInt64Max).value_or(0);
  desired.full = frame.flag("full", false);
  desired.more = frame.flag("more", false);
  frame.each("tasks", true, JsonReader::kManyElements,
             [&](const Json& element, const std::string& path) {
               desired.tasks.push_back(read_desired_task(JsonReader(element, path, frame.error())));
             });
  desired.removed = frame.texts("removed");
  return desired;
}

ServerStream read_stream(JsonReader& frame) {
  ServerStream stream;
  stream.stream_id = frame.name("streamId");
  stream.container_id = frame.name("containerId");
  const Json* request = frame.object("request", true);
  if (request == nullptr) return stream;
  Result<StreamRequest> decoded = decode_stream_request(*request);
  if (decoded) {
    stream.request = std::move(*decoded);
  } else {
    frame.refuse("request." + decoded.error().message);
  }
  return stream;
}

Result<Json> parse_frame(std::string_view text) {
  if (text.size() > limits::kAgentFrameBytes) {
    return fail(ErrorCode::kProtocol, fmt::format("the frame has {} bytes; at most {} are allowed",
                                                  text.size(), limits::kAgentFrameBytes));
  }
  Result<Json> json = Json::parse(text);
  if (!json) return fail(ErrorCode::kProtocol, "the frame is not JSON: " + json.error().message);
  return json;
}

}  // namespace

std::string encode(const AgentMessage& message) {
  Json json = Json::object();
  if (const auto* hello = std::get_if<AgentHello>(&message)) {
    json.set("type", "hello");
    json.set("protocol", hello->protocol);
    set_text(json, "bootId", hello->boot_id);
    json.set("epoch", hello->epoch);
    json.set("registration", encode_registration(hello->registration));
    json.set("observed", observations_json(hello->observed));
    set_array(json, "running", hello->running);
  } else if (const auto* observed = std::get_if<AgentObserved>(&message)) {
    json.set("type", "observed");
    json.set("seq", observed->seq);
    json.set("tasks", observations_json(observed->tasks));
  }
  return json.dump();
}

std::string encode(const ServerMessage& message) {
  Json json = Json::object();
  if (const auto* desired = std::get_if<ServerDesired>(&message)) {
    json.set("type", "desired");
    json.set("revision", desired->revision);
    json.set("full", desired->full);
    if (desired->more) json.set("more", true);
    Json tasks = Json::array();
    for (const core::DesiredTask& task : desired->tasks) tasks.push(desired_task_json(task));
    json.set("tasks", std::move(tasks));
    set_array(json, "removed", desired->removed);
  } else if (const auto* ack = std::get_if<ServerAck>(&message)) {
    json.set("type", "ack");
    json.set("seq", ack->seq);
  } else if (const auto* refused = std::get_if<ServerRefused>(&message)) {
    json.set("type", "refused");
    json.set("reason", valid_utf8(refused->reason));
    if (refused->stop_containers) json.set("stopContainers", true);
    if (refused->leave) json.set("leave", true);
  } else if (const auto* stream = std::get_if<ServerStream>(&message)) {
    json.set("type", "stream");
    json.set("streamId", stream->stream_id);
    json.set("containerId", stream->container_id);
    json.set("request", encode_stream_request(stream->request));
  }
  return json.dump();
}

std::vector<std::string> encode_in_parts(const ServerDesired& desired, std::size_t bytes_max) {
  std::vector<std::string> frames;
  ServerDesired part{desired.revision, desired.full, {}, {}, desired.full};
  std::size_t bytes = 0;
  const auto make_room = [&](std::size_t wanted) {
    if (bytes > 0 && bytes + wanted > bytes_max) {
      frames.push_back(encode(ServerMessage(part)));
      part = {part.revision + 1, desired.full, {}, {}, desired.full};
      bytes = 0;
    }
    bytes += wanted;
  };
  for (const core::DesiredTask& task : desired.tasks) {
    make_room(desired_task_json(task).dump().size() + 1);
    part.tasks.push_back(task);
  }
  for (const std::string& task_id : desired.removed) {
    make_room(task_id.size() + 3);
    part.removed.push_back(task_id);
  }
  part.more = false;
  frames.push_back(encode(ServerMessage(part)));
  return frames;
}

std::size_t encoded_bytes_at_most(const core::TaskObservation& task) {
  constexpr std::size_t kMembers = 256;  // names and numbers
  constexpr std::size_t kEscaped = 6;    // a control character: \u001f
  std::size_t bytes = kMembers + task.task_id.size();
  for (const core::ContainerObservation& container : task.containers) {
    bytes += kMembers + container.name.size() + container.runtime_id.size() +
             container.image_digest.size() + kEscaped * container.reason.size();
  }
  return bytes;
}

Result<AgentMessage> decode_agent_message(std::string_view text) {
  const Result<Json> json = parse_frame(text);
  if (!json) return fail(json.error());
  std::optional<base::Error> error;
  JsonReader frame(*json, "", error);
  const std::string type = frame.text("type", true);
  AgentMessage message;
  if (type == "hello") {
    message = read_hello(frame);
  } else if (type == "observed") {
    message = read_observed(frame);
  } else {
    frame.refuse(fmt::format("type: '{}' must be hello or observed", shortened(type)));
  }
  if (error) return fail(*error);
  return message;
}

Result<ServerMessage> decode_server_message(std::string_view text) {
  const Result<Json> json = parse_frame(text);
  if (!json) return fail(json.error());
  std::optional<base::Error> error;
  JsonReader frame(*json, "", error);
  const std::string type = frame.text("type", true);
  ServerMessage message;
  if (type == "desired") {
    message = read_desired(frame);
  } else if (type == "ack") {
    message = ServerAck{frame.number("seq", true, 0, kInt64Max).value_or(0)};
  } else if (type == "refused") {
    ServerRefused refused;
    refused.reason = frame.text("reason", true);
    refused.stop_containers = frame.flag("stopContainers", false);
    refused.leave = frame.flag("leave", false);
    message = std::move(refused);
  } else if (type == "stream") {
    message = read_stream(frame);
  } else {
    frame.refuse(
        fmt::format("type: '{}' must be desired, ack, refused or stream", shortened(type)));
  }
  if (error) return fail(*error);
  return message;
}

}  // namespace cotenant::codec
