#include "server/api_handler.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/prng.h"
#include "codec/api_schema.h"
#include "codec/ecs_response.h"
#include "codec/gpu_rules.h"
#include "server/api_refusals.h"
#include "server/header_text.h"

namespace cotenant::server {
namespace {

using base::ErrorCode;
using base::fail;

// A worker waits for the core loop, which answers a whole batch at once: so many callers can share one
// sync of the disk. They cost little while they wait.
constexpr std::size_t kWorkers = 64;
constexpr std::string_view kEcsPrefix = "AmazonEC2ContainerServiceV20141113.";
constexpr std::string_view kOwnPrefix = "Cotenant.";
constexpr std::string_view kAgentStreams = "/agent/v1/streams/";
constexpr std::string_view kClientStreams = "/v1/streams/";
constexpr std::size_t kWarningHeaders = 20;
const base::SystemClock kSystemClock;

// Ids are for finding a call again in logs, not secrets; the system is asked for a seed once a thread.
std::string new_request_id() {
  thread_local base::Prng prng(base::random_seed());
  return prng.next_hex_id();
}

ports::HttpResponse json_response(int status, std::string body) {
  ports::HttpResponse response;
  response.status = status;
  response.headers.push_back({"Content-Type", "application/x-amz-json-1.1"});
  response.headers.push_back({"x-amzn-RequestId", new_request_id()});
  response.body = std::move(body);
  return response;
}

ports::HttpResponse error_response(const base::Error& error) {
  const int status = error.code == ErrorCode::kAccessDenied ? 403
                     : base::is_client_fault(error.code)    ? 400
                                                            : 500;
  return json_response(status, codec::encode_error(error));
}

// For a metric's label: only names that are known, because anybody may send any header.
std::string_view operation_label(std::string_view header) {
  for (const std::string_view prefix : {kEcsPrefix, kOwnPrefix}) {
    if (header.substr(0, prefix.size()) != prefix) continue;
    const std::string_view name = header.substr(prefix.size());
    if (find_own_operation(name) != nullptr || codec::find_operation(name) != nullptr) return name;
  }
  return "unknown";
}

// An operation, and ECS's model of its input (none for cotenant's own).
struct Target {
  ApiFunction function = nullptr;
  const codec::Operation* model = nullptr;
};

base::Result<Target> find_target(std::string_view header) {
  if (header.substr(0, kOwnPrefix.size()) == kOwnPrefix) {
    if (ApiFunction function = find_own_operation(header.substr(kOwnPrefix.size()))) {
      return Target{function, nullptr};
    }
  }
  if (header.substr(0, kEcsPrefix.size()) == kEcsPrefix) {
    const std::string_view name = header.substr(kEcsPrefix.size());
    const codec::Operation* model = codec::find_operation(name);
    if (model != nullptr) {
      if (ApiFunction function = find_ecs_operation(name)) return Target{function, model};
      return fail(
          ErrorCode::kUnsupportedFeature,
          fmt::format(
              "{} is an operation of ECS that cotenant does not offer yet: {}; it offers {}", name,
              refusal_reason(name), offered_operations()));
    }
  }
  return fail(ErrorCode::kUnknownOperation,
              fmt::format("X-Amz-Target: '{}' names no operation; it must be {}<Operation>",
                          header_text(header.substr(0, 128)), kEcsPrefix));
}

bool is_health(const ports::HttpRequest& request) {
  return request.method == "GET" && request.target == "/healthz";
}

ports::HttpResponse unhealthy(const base::Error& why) {
  return json_response(
      503, codec::Json::object({{"status", "unhealthy"}, {"message", why.message}}).dump());
}

}  // namespace

ApiHandler::ApiHandler(CoreLoop& loop, AgentHub& hub, Metrics& metrics, base::ArnFormat arns,
                       const RequestGuard* guard, AgentAccess* agents)
    : loop_(loop),
      hub_(hub),
      metrics_(metrics),
      arns_(std::move(arns)),
      open_guard_({}, kSystemClock, nullptr),
      guard_(guard == nullptr ? open_guard_ : *guard),
      agents_(agents),
      streams_(kSystemClock,
               [this](const std::string& instance_id, const codec::ServerStream& stream) {
                 const auto asked = loop_.read<bool>(
                     [&](const core::State&) { return hub_.ask(instance_id, stream); });
                 return asked && *asked;
               }),
      workers_(kWorkers, base::limits::kQueuedRequests) {}

void ApiHandler::handle(ports::HttpRequest request, ports::HttpResponder respond) {
  const bool asks_health = is_health(request);
  const bool queued =
      workers_.post([this, request = std::move(request), respond] { respond(answer(request)); });
  if (queued) return;
  const base::Error error{ErrorCode::kThrottling, "too many requests are waiting; try again later"};
  // Whoever asks for health goes by the status.
  respond(asks_health ? unhealthy(error) : error_response(error));
}

void ApiHandler::upgrade(ports::HttpRequest request, ports::HttpUpgradeResponder respond) {
  const bool queued = workers_.post(
      [this, request = std::move(request), respond] { respond(answer_upgrade(request)); });
  if (!queued) {
    respond(tl::unexpected<ports::HttpResponse>(error_response(
        {ErrorCode::kThrottling, "too many requests are waiting; try again later"})));
  }
}

ports::HttpUpgrade ApiHandler::answer_upgrade(const ports::HttpRequest& request) {
  const auto refuse = [](int status, const base::Error& error) {
    ports::HttpResponse response = error_response(error);
    if (status != 0) response.status = status;
    return tl::unexpected<ports::HttpResponse>(std::move(response));
  };
  const std::string_view target = request.target;
  const bool is_stream = target.substr(0, kAgentStreams.size()) == kAgentStreams;
  if (target == "/agent/v1" || is_stream) {
    auto instance = guard_.check_agent(request);
    // Whatever its name, a refused agent is told that it is forbidden.
    const int status = !instance && base::is_client_fault(instance.error().code) ? 403 : 0;
    if (!instance) return refuse(status, instance.error());
    if (!is_stream) return hub_.accept(*instance);
    auto agent = streams_.accept_agent(std::string(target.substr(kAgentStreams.size())), *instance);
    if (!agent) return refuse(404, agent.error());
    return std::move(*agent);
  }
  if (auto status = guard_.check_call(request); !status) return refuse(0, status.error());
  if (target.substr(0, kClientStreams.size()) == kClientStreams) {
    auto client = streams_.accept_client(std::string(target.substr(kClientStreams.size())));
    if (!client) return refuse(404, client.error());
    return std::move(*client);
  }
  return refuse(
      404, {ErrorCode::kUnknownOperation, fmt::format("no WebSocket is served at {}",
                                                      header_text(request.target.substr(0, 128)))});
}

ports::HttpResponse ApiHandler::answer(const ports::HttpRequest& request) {
  if (auto status = guard_.check_call(request); !status) return error_response(status.error());
  if (is_health(request)) return health();
  if (request.method == "GET" && request.target == "/metrics") {
    // Behind what was answered before; a loop that is too busy to read is no reason to show nothing.
    [[maybe_unused]] const auto read = loop_.read<bool>([](const core::State&) { return true; });
    ports::HttpResponse response;
    response.headers.push_back({"Content-Type", "text/plain; version=0.0.4; charset=utf-8"});
    response.body = metrics_.text(!loop_.trouble(), hub_.connected());
    return response;
  }
  if (request.method == "POST" && request.target == "/") return call(request);
  ports::HttpResponse response = error_response(
      {ErrorCode::kUnknownOperation,
       fmt::format("{} {} is not served; use POST / with X-Amz-Target, GET "
                   "/healthz or GET /metrics",
                   header_text(request.method), header_text(request.target.substr(0, 128)))});
  response.status = 404;
  return response;
}

ports::HttpResponse ApiHandler::health() {
  // A read through the loop: an answer means that the core lives.
  auto alive = loop_.read<bool>([](const core::State&) { return true; });
  const auto trouble = alive ? loop_.trouble() : alive.error();
  if (!trouble) return json_response(200, R"({"status":"ok"})");
  return unhealthy(*trouble);
}

ports::HttpResponse ApiHandler::call(const ports::HttpRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  auto response = perform(request);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  metrics_.count_request(operation_label(ports::header_value(request.headers, "X-Amz-Target")),
                         response ? "ok" : base::error_name(response.error().code), took.count());
  return response ? std::move(*response) : error_response(response.error());
}

base::Result<ports::HttpResponse> ApiHandler::perform(const ports::HttpRequest& request) {
  const std::string_view header = ports::header_value(request.headers, "X-Amz-Target");
  auto target = find_target(header);
  if (!target) return fail(target.error());
  auto body = codec::Json::parse(request.body.empty() ? "{}" : std::string_view(request.body));
  if (body && !body->is_object())
    body = fail(ErrorCode::kSerialization, "the body must be an object");
  if (!body) return fail(body.error());

  std::vector<std::string> warnings;
  if (target->model != nullptr) {
    auto checked = codec::check_input(*target->model, *body);
    if (!checked) return fail(codec::with_gpu_documentation(checked.error()));
    warnings = std::move(*checked);
  }
  auto reply =
      target->function(ApiContext{loop_, arns_, metrics_, agents_, &hub_, &streams_}, *body);
  if (!reply) return fail(reply.error());
  warnings.insert(warnings.end(), reply->warnings.begin(), reply->warnings.end());

  ports::HttpResponse response = json_response(200, reply->body.dump());
  for (const std::string& warning : warnings) {
    base::log::warn("{}: {}", header, header_text(warning));
    if (response.headers.size() < kWarningHeaders) {
      response.headers.push_back({"X-Cotenant-Warning", header_text(warning)});
    }
  }
  return response;
}

}  // namespace cotenant::server
