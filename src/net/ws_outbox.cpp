#include "net/ws_outbox.h"

#include <fmt/format.h>

#include <utility>

namespace cotenant::net {
namespace {

class WsHandle final : public ports::WebSocket {
 public:
  WsHandle(std::shared_ptr<WsOutbox> outbox, const WebSocketOptions& options,
           std::function<void()> wake)
      : outbox_(std::move(outbox)), options_(options), wake_(std::move(wake)) {}

  void send(std::string text) override { queue({std::move(text), false}); }
  void send_binary(std::string data) override { queue({std::move(data), true}); }

  std::size_t queued_bytes() const override {
    const std::lock_guard lock(outbox_->mutex);
    return outbox_->bytes;
  }

  void set_reading(bool reading) override {
    {
      const std::lock_guard lock(outbox_->mutex);
      if (std::exchange(outbox_->reading, reading) == reading || !reading) return;
      if (std::exchange(outbox_->wake_posted, true)) return;
    }
    wake_();
  }

  void close(std::string reason) override {
    {
      const std::lock_guard lock(outbox_->mutex);
      outbox_->end(kWsCloseNormal, std::move(reason), /*at_once=*/false);
      if (std::exchange(outbox_->wake_posted, true)) return;
    }
    wake_();
  }

 private:
  void queue(WsFrame frame) {
    {
      const std::lock_guard lock(outbox_->mutex);
      if (outbox_->ended) return;
      const std::size_t size = frame.data.size();
      const std::size_t cost = size + kMessageCostBytes;
      if (size > options_.frame_bytes) {
        outbox_->end(kWsCloseTooBig,
                     fmt::format("an outgoing message has {} bytes, the limit is {}", size,
                                 options_.frame_bytes),
                     /*at_once=*/true);
      } else if (outbox_->frames.size() >= options_.queue_frames ||
                 outbox_->bytes + cost > options_.queue_bytes) {
        outbox_->end(kWsClosePolicyError,
                     fmt::format("the peer reads too slowly: {} bytes in {} messages wait for it",
                                 outbox_->bytes, outbox_->frames.size()),
                     /*at_once=*/true);
      } else {
        outbox_->bytes += cost;
        outbox_->above_mark = outbox_->above_mark || outbox_->bytes >= ports::kStreamHighWaterBytes;
        outbox_->frames.push_back(std::move(frame));
      }
      if (std::exchange(outbox_->wake_posted, true)) return;
    }
    wake_();
  }

  const std::shared_ptr<WsOutbox> outbox_;
  const WebSocketOptions options_;
  const std::function<void()> wake_;
};

}  // namespace

void WsOutbox::end(std::uint16_t close_code, std::string why, bool at_once) {
  if (ended) return;
  ended = true;
  urgent = at_once;
  code = close_code;
  reason = std::move(why);
  if (at_once) frames.clear();
}

std::shared_ptr<ports::WebSocket> make_ws_handle(std::shared_ptr<WsOutbox> outbox,
                                                 const WebSocketOptions& options,
                                                 std::function<void()> wake) {
  return std::make_shared<WsHandle>(std::move(outbox), options, std::move(wake));
}

}  // namespace cotenant::net
