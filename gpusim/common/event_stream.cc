#include "common/event_stream.h"

#include <poll.h>
#include <time.h>

#include <cerrno>

namespace gpusim {
namespace {

int64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

Status EventStream::open(const char* folder, Role role) {
  waiting_ = false;
  const Status status = client_.connect_to(folder, role);
  if (status != Status::kOk) return status;
  last_ = client_.event_sequence();
  // Asked for at once, so that the descriptor becomes readable when there is something.
  Request request = make_request(Op::kWaitEvent);
  request.arg = last_;
  const Status sent = client_.send(&request);
  waiting_ = sent == Status::kOk;
  return sent;
}

Status EventStream::next(EventEntry* event, int timeout_ms) {
  if (!client_.connected() || !waiting_) return Status::kDisconnected;
  const int64_t deadline_ms = now_ms() + timeout_ms;
  while (true) {
    const int64_t left_ms = timeout_ms < 0 ? -1 : deadline_ms - now_ms();
    pollfd entry = {client_.fd(), POLLIN, 0};
    const int ready =
        poll(&entry, 1, timeout_ms < 0 ? -1 : static_cast<int>(left_ms < 0 ? 0 : left_ms));
    if (ready > 0) break;
    if (ready == 0) return Status::kNotFound;
    if (errno != EINTR) return Status::kDisconnected;
  }
  Reply reply;
  waiting_ = false;
  const Status status = client_.receive(&reply);
  if (status != Status::kOk) return status;
  *event = reply.event;
  last_ = reply.value;
  Request request = make_request(Op::kWaitEvent);
  request.arg = last_;
  waiting_ = client_.send(&request) == Status::kOk;
  return Status::kOk;
}

}  // namespace gpusim
