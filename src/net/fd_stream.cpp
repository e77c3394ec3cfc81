#include "net/fd_stream.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace cotenant::net {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} * 1024;

class FdStream final : public ports::ByteStream {
 public:
  FdStream(base::UniqueFd socket, std::string early)
      : socket_(std::move(socket)), early_(std::move(early)) {
    const int flags = ::fcntl(socket_.get(), F_GETFL);
    ::fcntl(socket_.get(), F_SETFL, flags & ~O_NONBLOCK);
  }

  base::Result<bool> read(std::string& piece) override {
    if (!early_.empty()) {
      piece = std::exchange(early_, {});
      return true;
    }
    std::array<char, kReadBytes> bytes{};
    while (true) {
      const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count > 0) {
        piece.assign(bytes.data(), static_cast<std::size_t>(count));
        return true;
      }
      if (count < 0 && errno == EINTR) continue;
      if (closed_) return base::fail(base::ErrorCode::kUnavailable, "the connection was closed");
      if (count == 0) return false;
      return failed("read");
    }
  }

  base::Status write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed("write");
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  }

  base::Status end_writing() override {
    if (::shutdown(socket_.get(), SHUT_WR) != 0) return failed("end writing");
    return {};
  }

  // Not ::close: another thread may be using the descriptor.
  void close() override {
    closed_ = true;
    ::shutdown(socket_.get(), SHUT_RDWR);
  }

 private:
  static tl::unexpected<base::Error> failed(const char* doing) {
    return base::fail(base::ErrorCode::kIo,
                      std::string(doing) + " on the connection: " + std::strerror(errno));
  }

  const base::UniqueFd socket_;
  std::string early_;  // the reader's
  std::atomic<bool> closed_{false};
};

}  // namespace

std::unique_ptr<ports::ByteStream> make_fd_stream(base::UniqueFd socket, std::string early) {
  return std::make_unique<FdStream>(std::move(socket), std::move(early));
}

}  // namespace cotenant::net
