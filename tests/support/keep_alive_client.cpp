#include "keep_alive_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace cotenant::tests {
namespace {

using base::ErrorCode;
using base::fail;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

base::Status KeepAliveClient::connect() {
  socket_ = base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return {};
  socket_ = base::UniqueFd();
  return fail(ErrorCode::kUnavailable, fmt::format("connect: {}", std::strerror(errno)));
}

base::Status KeepAliveClient::send_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return fail(ErrorCode::kIo, "send failed");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

base::Result<PlainResponse> KeepAliveClient::post(std::string_view operation,
                                                  std::string_view body) {
  const bool kept = static_cast<bool>(socket_);
  if (!kept) {
    if (auto status = connect(); !status) return fail(status.error());
  }
  const std::string request = fmt::format(
      "POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/x-amz-json-1.1\r\n"
      "X-Amz-Target: AmazonEC2ContainerServiceV20141113.{}\r\n{}Content-Length: {}\r\n\r\n{}",
      port_, operation, headers_, body.size(), body);
  auto sent = send_all(request);
  if (!sent && kept) {
    // The server has closed the connection that was kept, before it had anything of this request.
    if (auto status = connect(); !status) return fail(status.error());
    sent = send_all(request);
  }
  auto response = sent ? receive() : base::Result<PlainResponse>(fail(sent.error()));
  if (!response) socket_ = base::UniqueFd();
  return response;
}

base::Result<PlainResponse> KeepAliveClient::receive() {
  std::string data;
  std::size_t header_end = std::string::npos;
  std::size_t want = 0;
  PlainResponse response;
  bool close_after = false;
  char buffer[64 * 1024];
  while (header_end == std::string::npos || data.size() < want) {
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    if (got <= 0) return fail(ErrorCode::kIo, "the connection ended before the answer");
    data.append(buffer, static_cast<std::size_t>(got));
    if (header_end != std::string::npos) continue;
    header_end = data.find("\r\n\r\n");
    if (header_end == std::string::npos) continue;
    const std::string header = lower(data.substr(0, header_end));
    const std::size_t length = header.find("content-length:");
    if (length == std::string::npos || header.size() < 12) {
      return fail(ErrorCode::kProtocol, "no Content-Length: " + header);
    }
    response.status = std::atoi(header.c_str() + 9);
    want = header_end + 4 + static_cast<std::size_t>(std::atoll(header.c_str() + length + 15));
    close_after =
        header.starts_with("http/1.0") || header.find("connection: close") != std::string::npos;
  }
  response.body = data.substr(header_end + 4, want - header_end - 4);
  if (close_after) socket_ = base::UniqueFd();
  return response;
}

}  // namespace cotenant::tests
