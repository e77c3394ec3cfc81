#include "adapters/docker_runtime.h"

#include <fmt/format.h>

#include <utility>

#include "adapters/docker_errors.h"
#include "adapters/docker_events.h"
#include "adapters/podman_create.h"
#include "base/limits.h"
#include "base/log.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using codec::Json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr milliseconds kListTimeout = minutes(2);
constexpr milliseconds kCreateTimeout = minutes(4);
constexpr milliseconds kStartTimeout = minutes(3);
constexpr milliseconds kStopMargin = seconds(30);
constexpr milliseconds kRemoveTimeout = minutes(5);
constexpr std::size_t kDigestsMax = 1024;

std::string container_path(std::string_view id, std::string_view suffix) {
  return fmt::format("/containers/{}{}", percent_encode(id), suffix);
}

// An empty id would make "/containers//json", which engines take for other calls.
Status check_id(std::string_view doing, const std::string& id) {
  if (!id.empty()) return {};
  return fail(ErrorCode::kClient, fmt::format("{}: the container's id must not be empty", doing));
}

}  // namespace

DockerRuntime::DockerRuntime(std::shared_ptr<DockerClient> engine) : engine_(std::move(engine)) {}

DockerRuntime::DockerRuntime(std::shared_ptr<const ports::HttpClient> client)
    : DockerRuntime(std::make_shared<DockerClient>(std::move(client))) {}

void DockerRuntime::forget_what_is_old() {
  const std::uint64_t absences = engine_->absences();
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(absences_, absences) == absences) return;
    digests_.clear();
  }
  cache_.forget("");
}

Result<ports::EngineInfo> DockerRuntime::info() {
  engine_->forget_version();  // it may have been upgraded without a call in between
  const Result<DockerVersion> spoken = engine_->version();
  if (!spoken) return fail(spoken.error());
  const Result<Json> info =
      engine_->get_json({"ask the engine's info", "GET", "/info", kDockerQueryTimeout});
  if (!info) return fail(info.error());
  const Result<Json> networks =
      engine_->get_json({"ask the engine's networks", "GET", "/networks", kDockerQueryTimeout});
  if (!networks) return fail(networks.error());
  return parse_docker_info(*spoken, *info, *networks);
}

Result<ports::ContainerState> DockerRuntime::inspect(const std::string& id) {
  const Result<Json> body = engine_->get_json({fmt::format("inspect container {}", id), "GET",
                                               container_path(id, "/json"), kDockerQueryTimeout});
  if (!body) return fail(body.error());
  Result<ports::ContainerState> state = parse_docker_inspect(*body);
  if (!state) return fail(state.error());
  state->image_digest = image_digest(state->image_digest, state->image);
  return state;
}

std::string DockerRuntime::image_digest(const std::string& image_id, const std::string& image) {
  const std::string key = image_id + " " + image;
  {
    const std::lock_guard lock(mutex_);
    const auto found = digests_.find(key);
    if (found != digests_.end()) return found->second;
  }
  const Result<Json> body = engine_->get_json(
      {fmt::format("inspect image {}", image_id), "GET",
       fmt::format("/images/{}/json", percent_encode(image_id)), kDockerQueryTimeout});
  // An image that was removed under its container has no digest any more; that is no error.
  if (!body) return image_id;
  const std::string digest = docker_repo_digest(*body, image).value_or(image_id);
  const std::lock_guard lock(mutex_);
  if (digests_.size() >= kDigestsMax) digests_.clear();
  digests_.insert_or_assign(key, digest);
  return digest;
}

Result<std::vector<ports::ContainerState>> DockerRuntime::list(const std::string& label,
                                                               const std::string& value) {
  forget_what_is_old();
  const std::uint64_t generation = cache_.generation();
  const Result<Json> body = engine_->get_json(
      {fmt::format("list containers with {}={}", label, value), "GET",
       "/containers/json?all=1&filters=" + percent_encode(docker_label_filter(label, value)),
       kListTimeout});
  if (!body) return fail(body.error());
  if (!body->is_array()) {
    return fail(ErrorCode::kProtocol, "list containers: the answer is not an array");
  }
  std::vector<ports::ContainerState> states;
  for (const Json& element : body->as_array()) {
    Result<ports::ContainerState> entry = parse_docker_list_entry(element);
    if (!entry) return fail(entry.error());
    const auto now = DockerCache::Clock::now();
    const ports::ContainerPhase listed = entry->phase;
    if (std::optional<ports::ContainerState> known = cache_.get(entry->id, listed, now)) {
      states.push_back(std::move(*known));
      continue;
    }
    Result<ports::ContainerState> state = inspect(entry->id);
    if (!state) {
      if (is_no_such_container(state.error())) continue;  // removed since it was listed
      if (state.error().code == ErrorCode::kUnavailable) return fail(state.error());
      // One container that the engine cannot tell of must not hide the others, nor be taken for
      // gone: the list's own word on it stands.
      base::log::warn("{}; going by the engine's list", state.error().message);
      state = std::move(entry);
    }
    cache_.put(*state, listed, generation, now);
    states.push_back(std::move(*state));
  }
  return states;
}

Status DockerRuntime::make_podman_volumes(const ports::ContainerSpec& spec) {
  for (const Json& volume : podman_volume_bodies(spec)) {
    const std::string doing = fmt::format("create volume {}", volume.string_or("Name", ""));
    // Docker's call, because one that is there already is success.
    const Result<ports::HttpResponse> response =
        engine_->send({doing, "POST", "/volumes/create", kDockerQueryTimeout, volume.dump()});
    if (!response) return fail(response.error());
    if (response->status != 201 && response->status != 200) {
      return fail(docker_error(doing, *response));
    }
  }
  return {};
}

Result<std::string> DockerRuntime::create(const ports::ContainerSpec& spec) {
  const Result<DockerVersion> spoken = engine_->version();
  if (!spoken) return fail(spoken.error());
  const bool by_libpod = spoken->name == kPodmanName && !spec.cdi_devices.empty();
  Result<Json> body = docker_create_body(spec, by_libpod ? kDockerApiCdi : spoken->api_minor);
  if (body && by_libpod) body = podman_create_body(spec);
  if (!body) return fail(body.error());
  const std::string doing = fmt::format("create container '{}'", spec.name);
  DockerClient::Call call{doing, "POST", "/containers/create?name=" + percent_encode(spec.name),
                          kCreateTimeout, body->dump()};
  if (by_libpod) {
    if (Status made = make_podman_volumes(spec); !made) return fail(made.error());
    call.path = "/containers/create";
    call.prefix = kLibpodPrefix;
  }
  const Result<ports::HttpResponse> response = engine_->send(call);
  if (!response) return fail(response.error());
  if (response->status != 201) return fail(docker_error(doing, *response));
  const Result<Json> answer = Json::parse(response->body);
  std::string id = answer ? answer->string_or("Id", "") : "";
  if (id.empty()) return fail(ErrorCode::kProtocol, doing + ": the answer has no Id");
  return id;
}

Status DockerRuntime::start(const std::string& id) {
  const std::string doing = fmt::format("start container {}", id);
  if (Status ok = check_id(doing, id); !ok) return ok;
  const Result<ports::HttpResponse> response =
      engine_->send({doing, "POST", container_path(id, "/start"), kStartTimeout});
  cache_.forget(id);
  if (!response) return fail(response.error());
  if (response->status == 204 || response->status == 304) return {};
  return fail(docker_error(doing, *response));
}

Status DockerRuntime::stop(const std::string& id, std::int64_t timeout_s) {
  const std::string doing = fmt::format("stop container {}", id);
  if (Status ok = check_id(doing, id); !ok) return ok;
  // A negative number would let the engine wait for ever.
  if (timeout_s < 0 || timeout_s > base::limits::kStopTimeoutSecondsMax) {
    return fail(ErrorCode::kClient, fmt::format("{}: a stop timeout of {} s is not in 0..{}", doing,
                                                timeout_s, base::limits::kStopTimeoutSecondsMax));
  }
  const Result<ports::HttpResponse> response =
      engine_->send({doing, "POST", container_path(id, fmt::format("/stop?t={}", timeout_s)),
                     seconds(timeout_s) + kStopMargin});
  cache_.forget(id);
  if (!response) return fail(response.error());
  if (response->status == 204 || response->status == 304) return {};
  return fail(docker_error(doing, *response));
}

Status DockerRuntime::remove(const std::string& id) {
  const std::string doing = fmt::format("remove container {}", id);
  if (Status ok = check_id(doing, id); !ok) return ok;
  const Result<ports::HttpResponse> response =
      engine_->send({doing, "DELETE", container_path(id, "?v=1"), kRemoveTimeout});
  cache_.forget(id);
  if (!response) return fail(response.error());
  if (response->status == 204 || response->status == 200) return {};
  const base::Error error = docker_error(doing, *response);
  if (is_no_such_container(error)) return {};
  // Another call removes it at this moment.
  if (response->status == 409 && error.message.find("already in progress") != std::string::npos) {
    return {};
  }
  return fail(error);
}

Status DockerRuntime::import_image(const std::string& image, const std::string& tar,
                                   const std::string& program) {
  const std::string doing = fmt::format("import image {}", image);
  const std::size_t colon = image.rfind(':');
  if (colon == std::string::npos) return fail(ErrorCode::kClient, doing + ": it must have a tag");
  const std::string entry_point = "ENTRYPOINT " + Json::array().push(program).dump();
  const Result<DockerVersion> spoken = engine_->version();
  if (!spoken) return fail(spoken.error());
  // Podman 4.3 goes by `repo` alone, and would call the image "latest".
  const std::string name =
      spoken->name == kPodmanName
          ? "repo=" + percent_encode(image)
          : fmt::format("repo={}&tag={}", percent_encode(image.substr(0, colon)),
                        image.substr(colon + 1));
  const Result<ports::HttpResponse> response = engine_->send(
      {doing, "POST",
       fmt::format("/images/create?fromSrc=-&{}&changes={}", name, percent_encode(entry_point)),
       kCreateTimeout, tar});
  if (!response) return fail(response.error());
  if (response->status != 200) return fail(docker_error(doing, *response));
  // A failure after the start of the answer comes as its last line.
  if (response->body.find("\"errorDetail\"") != std::string::npos) {
    return fail(ErrorCode::kClient, fmt::format("{}: {}", doing, response->body));
  }
  return {};
}

Status DockerRuntime::remove_unused_volumes(const std::string& label, const std::string& value) {
  const std::string doing = fmt::format("list unused volumes with {}={}", label, value);
  const Result<Json> body = engine_->get_json(
      {doing, "GET", "/volumes?filters=" + percent_encode(docker_volume_filter(label, value)),
       kDockerQueryTimeout});
  if (!body) return fail(body.error());
  Status first;
  for (const Json& volume : body->array_or_empty("Volumes")) {
    const std::string name = volume.string_or("Name", "");
    if (name.empty()) continue;
    const std::string removing = fmt::format("remove volume {}", name);
    const Result<ports::HttpResponse> response = engine_->send(
        {removing, "DELETE", "/volumes/" + percent_encode(name), kDockerQueryTimeout});
    if (!response) return fail(response.error());
    // 404: gone already; 409: a container that is being made has it.
    const bool good = response->status == 204 || response->status == 404 || response->status == 409;
    if (!good && first) first = fail(docker_error(removing, *response));
  }
  return first;
}

Status DockerRuntime::watch(const std::string& label, const std::string& value,
                            const std::function<void()>& on_change, std::stop_token stop) {
  // `since` makes the engine send also what happens while the connection is being made.
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  const DockerClient::Call call{
      "watch containers", "GET",
      fmt::format("/events?since={}.{:09}&filters={}", since / 1'000'000'000, since % 1'000'000'000,
                  percent_encode(docker_event_filter(label, value)))};
  DockerEvents events;
  const Status ended = engine_->stream(
      call,
      [&](std::string_view piece) {
        const std::vector<std::string> ids = events.feed(piece);
        for (const std::string& id : ids) cache_.forget(id);
        if (!ids.empty()) on_change();
      },
      stop);
  if (stop.stop_requested()) return {};
  engine_->note_gone();
  if (!ended) return ended;
  return fail(ErrorCode::kUnavailable, "watch containers: the engine ended its event stream");
}

}  // namespace cotenant::adapters
