// Private to net's .cpp files. What the producer of a streamed body and its connection share. Any
// thread.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "ports/http_body.h"

namespace cotenant::net {

class HttpBodyQueue {
 public:
  // The producer's side. True: the connection must be woken.
  bool write(std::string piece);
  bool finish();
  bool abort(std::string reason);
  std::size_t bytes() const;

  // The connection's side. What is to be done next, told once per wake.
  struct Next {
    std::string data;  // at most about 64 KiB
    bool is_last = false;
    std::optional<std::string> broken;  // why the body breaks off
  };
  Next take();
  // Why the body must break off at once, though a piece is still on its way.
  std::optional<std::string> overflow() const;
  // True when the producer, who had reached the mark, may go on.
  bool written(std::size_t bytes);
  void close();

 private:
  enum class State { kOpen, kFinished, kBroken, kClosed };

  bool wake();

  mutable std::mutex mutex_;
  std::deque<std::string> pieces_;
  std::size_t bytes_ = 0;  // with those that are being written
  bool above_mark_ = false;
  bool wake_posted_ = false;
  bool is_overflow_ = false;
  State state_ = State::kOpen;
  std::string reason_;
};

}  // namespace cotenant::net
