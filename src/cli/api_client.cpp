#include "cli/api_client.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "cli/exit_code.h"
#include "net/endpoint.h"
#include "net/http_client.h"

namespace cotenant::cli {
namespace {

constexpr std::chrono::seconds kTimeout{30};
constexpr const char* kEcsPrefix = "AmazonEC2ContainerServiceV20141113.";

base::Error server_error(const ports::HttpResponse& response) {
  auto body = codec::Json::parse(response.body);
  const std::string type = body ? body->string_or("__type", "") : "";
  const std::string message = body ? body->string_or("message", "") : response.body.substr(0, 500);
  return {base::ErrorCode::kClient,
          type.empty() ? fmt::format("HTTP status {}: {}", response.status, message)
                       : fmt::format("{}: {}", type, message)};
}

}  // namespace

base::Result<ApiClient> ApiClient::create(const ClientOptions& options) {
  ClientOptions resolved = options;
  resolved.endpoint = find_endpoint(options);
  auto endpoint = net::parse_endpoint(resolved.endpoint);
  if (!endpoint) return base::fail(endpoint.error());
  net::HttpClientOptions http_options;
  http_options.ca_certificate = options.ca_certificate;
  auto http = net::make_http_client(resolved.endpoint, std::move(http_options));
  if (!http) return base::fail(http.error());
  std::optional<Signer> signer;
  if (endpoint->kind == net::Endpoint::Kind::kTcp) {
    auto found = find_signer(resolved);
    if (!found) return base::fail(found.error());
    signer = std::move(*found);
  }
  return ApiClient(std::move(resolved), std::move(signer), endpoint->host_header(),
                   std::move(*http));
}

base::Result<std::shared_ptr<ports::WebSocket>> ApiClient::connect_stream(
    net::WebSocketClient& sockets, const std::string& path,
    std::shared_ptr<ports::WebSocketListener> listener) const {
  ports::HttpRequest request;
  request.target = path;
  if (signer_) {
    request.headers.push_back({"Host", host_});
    net::sign_sigv4(request, signer_->credentials, signer_->region, "ecs", std::time(nullptr));
    std::erase_if(request.headers, [](const auto& header) { return header.name == "Host"; });
  }
  return sockets.connect(options_.endpoint, path, std::move(listener), {}, request.headers);
}

base::Result<codec::Json> ApiClient::call(const std::string& operation, codec::Json body) const {
  if (operation.find("Cluster") == std::string::npos && body.find("cluster") == nullptr &&
      operation.find("TaskDefinition") == std::string::npos) {
    body.set("cluster", options_.cluster);
  }
  ports::HttpRequest request;
  request.method = "POST";
  const bool own = operation.rfind("Cotenant.", 0) == 0;
  request.headers = {{"Content-Type", "application/x-amz-json-1.1"},
                     {"X-Amz-Target", own ? operation : kEcsPrefix + operation}};
  request.body = body.dump();
  if (signer_) {
    request.headers.push_back({"Host", host_});
    net::sign_sigv4(request, signer_->credentials, signer_->region, "ecs", std::time(nullptr));
  }
  auto response = http_->send(request, kTimeout);
  if (!response) {
    return base::fail(
        base::ErrorCode::kUnavailable,
        fmt::format("no control plane answers at {}: {}; start one with `cotenant up`, or "
                    "name it with --endpoint or COTENANT_ENDPOINT",
                    options_.endpoint, response.error().message));
  }
  for (const ports::HttpHeader& header : response->headers) {
    if (header.name == "X-Cotenant-Warning") {
      fmt::print(stderr, "warning: {}\n", header.value);
    }
  }
  if (response->status != 200) {
    base::Error error = server_error(*response);
    if (!signer_ && error.message.rfind("MissingAuthenticationToken", 0) == 0) {
      error.message +=
          "; name the key pair with --credentials or AWS_SHARED_CREDENTIALS_FILE, or "
          "run as the user who runs cotenant";
    }
    return base::fail(std::move(error));
  }
  return codec::Json::parse(response->body);
}

base::Result<std::vector<std::string>> ApiClient::list(const std::string& operation,
                                                       const std::string& member,
                                                       const codec::Json& body) const {
  std::vector<std::string> items;
  codec::Json request = body;
  for (;;) {
    auto reply = call(operation, request);
    if (!reply) return base::fail(reply.error());
    for (const codec::Json& item : reply->array_or_empty(member)) items.push_back(item.as_string());
    const std::string token = reply->string_or("nextToken", "");
    if (token.empty()) return items;
    request.set("nextToken", token);
  }
}

int refuse(const base::Error& error) {
  fmt::print(stderr, "cotenant: {}\n", error.message);
  return kExitRefused;
}

int report(const base::Error& error) {
  const int exit_code = refuse(error);
  return error.code == base::ErrorCode::kUnavailable ? kExitUnreachable : exit_code;
}

}  // namespace cotenant::cli
