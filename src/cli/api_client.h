// The client verbs' way to a control plane.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client_endpoint.h"
#include "cli/options.h"
#include "codec/json.h"
#include "net/ws_client.h"
#include "ports/http.h"

namespace cotenant::cli {

class ApiClient {
 public:
  // Errors: kInvalidParameter, the endpoint is no http:// or unix:// URL; those of find_signer().
  static base::Result<ApiClient> create(const ClientOptions& options);

  // An ECS operation ("RunTask") or one of cotenant's own ("Cotenant.DescribeGpus"); `cluster` is
  // added to the body where it is missing. Warnings of the server go to stderr. Errors:
  // kUnavailable when nobody answers; else the server's, with its message.
  base::Result<codec::Json> call(const std::string& operation, codec::Json body) const;

  // Calls a List operation until its last page and returns the strings of `member`.
  base::Result<std::vector<std::string>> list(const std::string& operation,
                                              const std::string& member,
                                              const codec::Json& body) const;

  // Opens a WebSocket at `path` as whom call() calls. Errors: those of net::WebSocketClient.
  base::Result<std::shared_ptr<ports::WebSocket>> connect_stream(
      net::WebSocketClient& sockets, const std::string& path,
      std::shared_ptr<ports::WebSocketListener> listener) const;

  const ClientOptions& options() const { return options_; }

 private:
  ApiClient(ClientOptions options, std::optional<Signer> signer, std::string host,
            std::shared_ptr<ports::HttpClient> http)
      : options_(std::move(options)),
        signer_(std::move(signer)),
        host_(std::move(host)),
        http_(std::move(http)) {}

  ClientOptions options_;
  std::optional<Signer> signer_;  // none on a unix socket
  std::string host_;              // what the signature covers
  std::shared_ptr<ports::HttpClient> http_;
};

// Prints the error of a client verb to stderr and gives the exit code that it means.
int report(const base::Error& error);

}  // namespace cotenant::cli
