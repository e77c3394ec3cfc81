#include "cli/stream_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "cli/api_client.h"
#include "net/ws_client.h"

namespace cotenant::cli {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using codec::StreamChannel;

// From the connection until the agent says that it is ready.
constexpr std::chrono::seconds kReadyLimit{20};
// Output that waits for our own standard output; then the control plane is not read.
constexpr std::size_t kWaitingBytesMax = 1024 * 1024;

class Output final : public ports::WebSocketListener {
 public:
  struct Frame {
    StreamChannel channel;
    std::string bytes;
  };

  void on_open(std::shared_ptr<ports::WebSocket> socket) override {
    const std::lock_guard lock(mutex_);
    socket_ = std::move(socket);
    changed_.notify_all();
  }
  void on_text(std::string_view) override {}
  bool on_binary(std::string_view data) override {
    const auto frame = codec::decode_stream_frame(data);
    if (!frame) return false;
    const std::lock_guard lock(mutex_);
    frames_.push_back({frame->channel, std::string(frame->bytes)});
    bytes_ += frame->bytes.size();
    if (bytes_ >= kWaitingBytesMax && socket_) socket_->set_reading(false);
    changed_.notify_all();
    return true;
  }
  void on_drained() override {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  void on_closed(std::string_view reason) override {
    const std::lock_guard lock(mutex_);
    closed_ = std::string(reason);
    socket_.reset();
    changed_.notify_all();
  }

  // The next frame; the reason of the end where there is none. Errors: kTimeout.
  Result<Frame> next(std::optional<std::chrono::seconds> limit) {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return closed_ || !frames_.empty(); };
    if (!limit) {
      changed_.wait(lock, there);
    } else if (!changed_.wait_for(lock, *limit, there)) {
      return fail(ErrorCode::kTimeout,
                  "the instance's agent has not opened the stream; is it connected?");
    }
    if (frames_.empty()) {
      return fail(ErrorCode::kIo, "the stream broke off: " + *closed_);
    }
    Frame frame = std::move(frames_.front());
    frames_.pop_front();
    const bool was_full = bytes_ >= kWaitingBytesMax;
    bytes_ -= frame.bytes.size();
    if (was_full && bytes_ < kWaitingBytesMax && socket_) socket_->set_reading(true);
    return frame;
  }

  // False: the connection has ended.
  bool send(StreamChannel channel, std::string_view bytes = {}) {
    std::unique_lock lock(mutex_);
    // Who connects has its socket a moment before the listener hears of it.
    while (!closed_ && (!socket_ || socket_->queued_bytes() >= ports::kStreamHighWaterBytes)) {
      changed_.wait_for(lock, std::chrono::seconds(1));
    }
    if (closed_) return false;
    socket_->send_binary(codec::encode_stream_frame(channel, bytes));
    return true;
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::shared_ptr<ports::WebSocket> socket_;
  std::deque<Frame> frames_;
  std::size_t bytes_ = 0;
  std::optional<std::string> closed_;
};

// The terminal hands every key over, until the end of this.
class RawTerminal {
 public:
  RawTerminal() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios raw = before_;
    ::cfmakeraw(&raw);
    is_raw_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
  }
  ~RawTerminal() {
    if (is_raw_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool is_raw_ = false;
};

void send_terminal_size(Output& output) {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return;
  output.send(StreamChannel::kResize, fmt::format("{}x{}", size.ws_col, size.ws_row));
}

// Standard input until its end, or until `wake` can be read. The terminal's size is looked at with
// each key, and each second.
void send_input(Output& output, bool tty, int wake) {
  winsize last{};
  while (true) {
    if (tty) {
      winsize size{};
      if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 &&
          (size.ws_col != last.ws_col || size.ws_row != last.ws_row)) {
        last = size;
        send_terminal_size(output);
      }
    }
    std::array<pollfd, 2> waiting{{{STDIN_FILENO, POLLIN, 0}, {wake, POLLIN, 0}}};
    if (::poll(waiting.data(), waiting.size(), tty ? 1000 : -1) < 0 && errno != EINTR) return;
    if (waiting[1].revents != 0) return;
    if (waiting[0].revents == 0) continue;
    std::array<char, codec::kStreamFrameBytes> bytes{};
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      output.send(StreamChannel::kStdinEnd);
      return;
    }
    if (!output.send(StreamChannel::kStdin, {bytes.data(), static_cast<std::size_t>(count)}))
      return;
  }
}

// False: nobody reads us any more (a pager that was left), which is an end and no fault. Errors: kIo.
Result<bool> write_out(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EPIPE) {
      return false;
    } else if (errno == EAGAIN) {
      pollfd room{fd, POLLOUT, 0};  // whoever shares it with us does not want it to block
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return fail(ErrorCode::kIo,
                  fmt::format("the output cannot be written: {}", std::strerror(errno)));
    }
  }
  return true;
}

Result<codec::StreamEnd> copy_output(Output& output) {
  std::optional<std::chrono::seconds> limit = kReadyLimit;
  while (true) {
    Result<Output::Frame> frame = output.next(limit);
    if (!frame) return fail(frame.error());
    limit.reset();
    switch (frame->channel) {
      case StreamChannel::kEnd:
        return codec::decode_stream_end(frame->bytes);
      case StreamChannel::kStdout:
      case StreamChannel::kStderr: {
        const int fd = frame->channel == StreamChannel::kStdout ? STDOUT_FILENO : STDERR_FILENO;
        const Result<bool> is_read = write_out(fd, frame->bytes);
        if (!is_read) return fail(is_read.error());
        if (!*is_read) return codec::StreamEnd{};
        break;
      }
      default:
        break;
    }
  }
}

}  // namespace

Result<codec::StreamEnd> run_stream(const ClientOptions& options, const StreamTargetOptions& target,
                                    const codec::StreamRequest& request) {
  auto client = ApiClient::create(options);
  if (!client) return fail(client.error());
  codec::Json body = codec::encode_stream_request(request);
  body.set("task", target.task);
  if (!target.container.empty()) body.set("container", target.container);
  auto opened = client->call("Cotenant.OpenStream", std::move(body));
  if (!opened) return fail(opened.error());
  const std::string path = "/v1/streams/" + opened->string_or("streamId", "");
  auto sockets = net::WebSocketClient::create(options.ca_certificate);
  if (!sockets) return fail(sockets.error());
  const auto output = std::make_shared<Output>();
  auto socket = client->connect_stream(**sockets, path, output);
  if (!socket) return fail(socket.error());

  std::optional<RawTerminal> terminal;
  const base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  std::thread input;
  if (request.with_input) {
    if (request.tty) terminal.emplace();
    input = std::thread([&] { send_input(*output, request.tty, wake.get()); });
  }
  Result<codec::StreamEnd> end = copy_output(*output);
  (*socket)->close("done");
  if (input.joinable()) {
    constexpr std::uint64_t kOne = 1;
    [[maybe_unused]] const ssize_t woken = ::write(wake.get(), &kOne, sizeof kOne);
    input.join();
  }
  return end;
}

}  // namespace cotenant::cli
