#include "agent/stream_service.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>

#include "agent/stream_peer.h"
#include "base/log.h"

namespace cotenant::agent {
namespace {

namespace log = base::log;
using codec::StreamChannel;

StreamChannel channel_of(ports::OutputStream stream) {
  return stream == ports::OutputStream::kStderr ? StreamChannel::kStderr : StreamChannel::kStdout;
}

// "80x24".
bool parse_size(std::string_view text, int& columns, int& rows) {
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, columns);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != 'x') return false;
  const auto second = std::from_chars(first.ptr + 1, end, rows);
  const auto sane = [](int value) { return value > 0 && value < 10'000; };
  return second.ec == std::errc() && second.ptr == end && sane(columns) && sane(rows);
}

// What the client sends, into the program.
void feed_program(StreamPeer& peer, ports::ExecSession& session) {
  while (const std::optional<StreamPeer::Input> input = peer.receive()) {
    base::Status done;
    int columns = 0;
    int rows = 0;
    if (input->channel == StreamChannel::kStdin) {
      done = session.write(input->bytes);
    } else if (input->channel == StreamChannel::kStdinEnd) {
      done = session.end_input();
    } else if (input->channel == StreamChannel::kResize &&
               parse_size(input->bytes, columns, rows)) {
      done = session.resize(columns, rows);
    }
    // A program that reads no more, or is over: its output tells.
    if (!done) log::debug("agent: {}", done.error().message);
  }
}

}  // namespace

struct StreamService::Stream {
  std::string id;
  std::string runtime_id;
  codec::StreamRequest request;
  std::shared_ptr<StreamPeer> peer = std::make_shared<StreamPeer>();
  std::atomic<bool> over{false};
  std::thread thread;
};

StreamService::StreamService(ports::ContainerStreams& streams, StreamConnector connect)
    : streams_(streams), connect_(std::move(connect)) {}

StreamService::~StreamService() {
  stop();
}

void StreamService::join_ended() {
  for (auto at = open_.begin(); at != open_.end();) {
    if (!(*at)->over) {
      ++at;
      continue;
    }
    (*at)->thread.join();
    at = open_.erase(at);
  }
}

void StreamService::open(const std::string& stream_id, const std::string& runtime_id,
                         codec::StreamRequest request) {
  const std::lock_guard lock(mutex_);
  join_ended();
  if (stopped_) return;
  if (open_.size() >= kStreamsMax) {
    log::warn("agent: {} log and exec streams are open; another one is not begun", open_.size());
    return;
  }
  auto stream = std::make_unique<Stream>();
  stream->id = stream_id;
  stream->runtime_id = runtime_id;
  stream->request = std::move(request);
  try {
    stream->thread = std::thread([this, raw = stream.get()] {
      run(*raw);
      raw->over = true;
    });
  } catch (const std::system_error& error) {
    log::error("agent: cannot start a thread for a stream: {}", error.what());
    return;
  }
  open_.push_back(std::move(stream));
}

void StreamService::stop() {
  std::list<std::unique_ptr<Stream>> left;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(open_);
  }
  for (const auto& stream : left) stream->peer->hang_up("the agent stops");
  for (const auto& stream : left) stream->thread.join();
}

void StreamService::run(Stream& stream) {
  const auto socket = connect_(stream.id, stream.peer);
  if (!socket) {
    log::warn("agent: a stream cannot be opened: {}", socket.error().message);
    return;
  }
  if (stream.runtime_id.empty()) {
    return stream.peer->end(
        {"the container is not on its instance (any more): it was not created yet, or its logs were "
         "cleaned up",
         std::nullopt});
  }
  if (stream.request.kind == codec::StreamKind::kLogs) {
    logs(stream);
  } else {
    exec(stream);
  }
}

void StreamService::logs(Stream& stream) {
  StreamPeer& peer = *stream.peer;
  if (!peer.send(StreamChannel::kReady)) return;
  const codec::StreamRequest& request = stream.request;
  const base::Status status = streams_.logs(
      stream.runtime_id, {request.follow, request.tail, request.since_ms, request.timestamps},
      [&](ports::OutputStream output, std::string_view bytes) {
        peer.send(channel_of(output), bytes);
      },
      peer.ended());
  peer.end({status ? "" : status.error().message, std::nullopt});
}

void StreamService::exec(Stream& stream) {
  StreamPeer& peer = *stream.peer;
  const codec::StreamRequest& request = stream.request;
  auto session =
      streams_.exec(stream.runtime_id, {request.command, request.with_input, request.tty});
  if (!session) return peer.end({session.error().message, std::nullopt});
  if (!peer.send(StreamChannel::kReady)) return;
  // At once, also while the feeder waits for a program that reads no more.
  const std::stop_callback on_ended(peer.ended(), [&] { (*session)->close(); });
  std::thread feeder;
  try {
    feeder = std::thread([&] { feed_program(peer, **session); });
  } catch (const std::system_error& error) {
    return peer.end({std::string("cannot start a thread: ") + error.what(), std::nullopt});
  }
  const base::Status status =
      (*session)->read([&](ports::OutputStream output, std::string_view bytes) {
        peer.send(channel_of(output), bytes);
      });
  codec::StreamEnd end;
  if (!status) {
    end.error = status.error().message;
  } else if (const base::Result<int> code = (*session)->exit_code()) {
    end.exit_code = *code;
  } else {
    end.error = code.error().message;
  }
  peer.end(end);
  feeder.join();
}

}  // namespace cotenant::agent
