#include "adapters/docker_client.h"

#include <fmt/format.h>

#include <utility>

#include "adapters/docker_errors.h"

namespace cotenant::adapters {

using base::ErrorCode;
using base::fail;
using base::Result;
using codec::Json;

DockerClient::DockerClient(std::shared_ptr<const ports::HttpClient> client)
    : client_(std::move(client)) {}

// The ports have one word for an engine that is away, be it before or after the connection was
// made.
base::Error DockerClient::failed(const Call& call, const base::Error& error) {
  const ErrorCode code = error.code == ErrorCode::kIo ? ErrorCode::kUnavailable : error.code;
  if (code == ErrorCode::kUnavailable) note_gone();
  return {code, fmt::format("{}: {}", call.doing, error.message)};
}

Result<DockerVersion> DockerClient::version() {
  {
    const std::lock_guard lock(mutex_);
    if (version_) return *version_;
  }
  const Call call{"ask the engine's version", "GET", "/version", kDockerQueryTimeout};
  ports::HttpRequest request;
  request.target = call.path;
  const Result<ports::HttpResponse> response = client_->send(request, call.timeout);
  if (!response) return fail(failed(call, response.error()));
  if (response->status != 200) return fail(docker_error(call.doing, *response));
  const Result<Json> body = Json::parse(response->body);
  if (!body) {
    return fail(ErrorCode::kProtocol,
                fmt::format("the engine's version: {}", body.error().message));
  }
  Result<DockerVersion> version = parse_docker_version(*body);
  if (version) {
    const std::lock_guard lock(mutex_);
    version_ = *version;
  }
  return version;
}

void DockerClient::forget_version() {
  const std::lock_guard lock(mutex_);
  version_.reset();
}

std::uint64_t DockerClient::absences() const {
  const std::lock_guard lock(mutex_);
  return absences_;
}

void DockerClient::note_gone() {
  const std::lock_guard lock(mutex_);
  version_.reset();
  ++absences_;
}

Result<ports::HttpRequest> DockerClient::make_request(const Call& call) {
  const Result<DockerVersion> spoken = version();
  if (!spoken) return fail(spoken.error());
  ports::HttpRequest request;
  request.method = call.method;
  request.target = call.prefix.empty() ? fmt::format("/v1.{}{}", spoken->api_minor, call.path)
                                       : call.prefix + call.path;
  request.headers = call.headers;
  if (!call.body.empty()) {
    request.headers.push_back({"Content-Type", "application/json"});
    request.body = call.body;
  }
  return request;
}

Result<ports::HttpResponse> DockerClient::send(const Call& call) {
  const Result<ports::HttpRequest> request = make_request(call);
  if (!request) return fail(request.error());
  Result<ports::HttpResponse> response = client_->send(*request, call.timeout);
  if (!response) return fail(failed(call, response.error()));
  return response;
}

Result<Json> DockerClient::get_json(const Call& call) {
  const Result<ports::HttpResponse> response = send(call);
  if (!response) return fail(response.error());
  if (response->status != 200) return fail(docker_error(call.doing, *response));
  Result<Json> body = Json::parse(response->body);
  if (!body) {
    return fail(ErrorCode::kProtocol, fmt::format("{}: {}", call.doing, body.error().message));
  }
  return body;
}

Result<ports::HttpResponse> DockerClient::receive(const Call& call, const OnData& on_data,
                                                  std::stop_token stop) {
  const Result<ports::HttpRequest> request = make_request(call);
  if (!request) return fail(request.error());
  Result<ports::HttpResponse> response = client_->receive(*request, on_data, stop);
  if (response) return response;
  // Somebody's stop tells nothing of the engine.
  if (stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, fmt::format("{}: stopped", call.doing));
  }
  return fail(failed(call, response.error()));
}

Result<std::unique_ptr<ports::ByteStream>> DockerClient::upgrade(const Call& call) {
  const Result<ports::HttpRequest> request = make_request(call);
  if (!request) return fail(request.error());
  auto upgraded = client_->upgrade(*request, call.timeout);
  if (!upgraded) return fail(failed(call, upgraded.error()));
  if (auto* stream = std::get_if<std::unique_ptr<ports::ByteStream>>(&*upgraded)) {
    return std::move(*stream);
  }
  return fail(docker_error(call.doing, std::get<ports::HttpResponse>(*upgraded)));
}

base::Status DockerClient::stream(const Call& call, const OnData& on_data, std::stop_token stop) {
  const Result<ports::HttpRequest> request = make_request(call);
  if (!request) return fail(request.error());
  const base::Status ended = client_->stream(*request, on_data, stop);
  if (!ended) return fail(failed(call, ended.error()));
  return {};
}

}  // namespace cotenant::adapters
