// A plain HTTP/1.1 client that keeps its connection, for measuring: one request at a time, answers
// with a Content-Length. One thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace cotenant::tests {

struct PlainResponse {
  int status = 0;
  std::string body;
};

class KeepAliveClient {
 public:
  // A port of 127.0.0.1. `headers`: of every request, each line with its CRLF.
  KeepAliveClient(int port, std::string headers) : port_(port), headers_(std::move(headers)) {}

  // POST / of the ECS operation. Connects where there is no connection; once more where the server
  // has closed the one that was kept. Errors: kUnavailable, kIo (sent, and no answer came), kProtocol.
  base::Result<PlainResponse> post(std::string_view operation, std::string_view body);

 private:
  base::Status connect();
  base::Status send_all(std::string_view text);
  base::Result<PlainResponse> receive();

  const int port_;
  const std::string headers_;
  base::UniqueFd socket_;
};

}  // namespace cotenant::tests
