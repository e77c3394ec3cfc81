// Blocking sockets for the net tests, with a deadline on every wait and no sleep: a client
// (RawSocket) that can send bytes no proper client would, and a server (RawListener) of the same
// kind.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cotenant::net_test {

using Clock = std::chrono::steady_clock;
inline constexpr std::chrono::milliseconds kPatience{10000};

// A blocking client or server socket with deadlines. Move only; closes itself.
class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {}
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&& other) noexcept;
  ~RawSocket() { close(); }

  static RawSocket connect_tcp(std::uint16_t port);

  bool is_open() const { return fd_ >= 0; }
  // False when the peer has closed or takes nothing more within kPatience.
  bool send(std::string_view bytes) const;
  // Reads until `text` has been seen (false: end or deadline first). What was read is in
  // received().
  bool read_until(std::string_view text);
  // Reads until the peer closes; nothing when it does not within kPatience.
  std::optional<std::string> read_to_end();
  const std::string& received() const { return received_; }
  void clear_received() { received_.clear(); }
  void finish_sending() const;
  void reset();  // closes with a TCP reset
  void close();

 private:
  enum class Read { kData, kEnd, kTimeout };
  Read read_some(std::chrono::steady_clock::time_point deadline);

  int fd_;
  std::string received_;
};

// A listening socket of the test: on a free TCP port, or at a unix path.
class RawListener {
 public:
  RawListener();
  explicit RawListener(const std::string& unix_path);
  ~RawListener();
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  std::uint16_t port() const { return port_; }
  RawSocket accept() const;  // is_open() is false after kPatience

 private:
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::string unix_path_;
};

// For conditions that nobody notifies about.
inline bool poll_until(const std::function<bool()>& done) {
  const auto deadline = Clock::now() + kPatience;
  while (!done()) {
    if (Clock::now() > deadline) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

inline bool wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left < 0) return false;
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline RawSocket& RawSocket::operator=(RawSocket&& other) noexcept {
  close();
  fd_ = std::exchange(other.fd_, -1);
  received_ = std::move(other.received_);
  return *this;
}

inline RawSocket RawSocket::connect_tcp(std::uint16_t port) {
  RawSocket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (::connect(socket.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    socket.close();
  }
  return socket;
}

inline bool RawSocket::send(std::string_view bytes) const {
  const auto deadline = Clock::now() + kPatience;
  while (!bytes.empty()) {
    if (!wait_for(fd_, POLLOUT, deadline)) return false;
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

inline RawSocket::Read RawSocket::read_some(Clock::time_point deadline) {
  if (!wait_for(fd_, POLLIN, deadline)) return Read::kTimeout;
  std::array<char, 65536> piece{};
  const ssize_t size = ::recv(fd_, piece.data(), piece.size(), 0);
  if (size <= 0) return Read::kEnd;
  received_.append(piece.data(), static_cast<std::size_t>(size));
  return Read::kData;
}

inline bool RawSocket::read_until(std::string_view text) {
  const auto deadline = Clock::now() + kPatience;
  while (received_.find(text) == std::string::npos) {
    if (read_some(deadline) != Read::kData) return false;
  }
  return true;
}

inline std::optional<std::string> RawSocket::read_to_end() {
  const auto deadline = Clock::now() + kPatience;
  for (;;) {
    const Read read = read_some(deadline);
    if (read == Read::kEnd) return received_;
    if (read == Read::kTimeout) return std::nullopt;
  }
}

inline void RawSocket::finish_sending() const {
  ::shutdown(fd_, SHUT_WR);
}

inline void RawSocket::reset() {
  const linger at_once{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

inline void RawSocket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

inline RawListener::RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size);
  ::listen(fd_, 16);
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
}

inline RawListener::RawListener(const std::string& unix_path)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), unix_path_(unix_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, unix_path.data(),
              std::min(unix_path.size(), sizeof address.sun_path - 1));
  ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::listen(fd_, 16);
}

inline RawListener::~RawListener() {
  ::close(fd_);
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

inline RawSocket RawListener::accept() const {
  if (!wait_for(fd_, POLLIN, Clock::now() + kPatience)) return RawSocket(-1);
  return RawSocket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
}

}  // namespace cotenant::net_test
