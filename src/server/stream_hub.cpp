#include "server/stream_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "net/crypto.h"

namespace cotenant::server {
namespace {

constexpr std::size_t kIdChars = 32;
constexpr std::string_view kIdDigits = "0123456789abcdef";

}  // namespace

using base::ErrorCode;
using base::fail;
using base::Result;
using ListenerPtr = std::shared_ptr<ports::WebSocketListener>;

StreamHub::StreamHub(const base::Clock& clock, Ask ask) : clock_(clock), ask_(std::move(ask)) {}

void StreamHub::sweep() {
  const base::TimeMs now_ms = clock_.now_ms();
  std::erase_if(streams_, [&](const auto& entry) {
    const Stream& stream = entry.second;
    if (stream.relay->is_over()) return true;
    if (stream.has_client && stream.has_agent) return false;
    const bool late = now_ms > stream.at_ms + kStepMs || now_ms < stream.at_ms;
    if (late) stream.relay->close("the agent has not opened its side in time");
    return late;
  });
}

Result<std::string> StreamHub::open(const std::string& instance_id, std::string container_id,
                                    codec::StreamRequest request) {
  const std::lock_guard lock(mutex_);
  sweep();
  if (streams_.size() >= kStreamsMax) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{} log and exec streams are open; end some first", streams_.size()));
  }
  const auto of_instance = std::count_if(streams_.begin(), streams_.end(), [&](const auto& entry) {
    return entry.second.instance_id == instance_id;
  });
  if (static_cast<std::size_t>(of_instance) >= kStreamsPerInstanceMax) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{} log and exec streams of instance {} are open; end some first",
                            of_instance, instance_id));
  }
  std::string id = net::random_text(kIdChars, kIdDigits);
  Stream& stream = streams_[id];
  stream.instance_id = instance_id;
  stream.asked = {id, std::move(container_id), std::move(request)};
  stream.at_ms = clock_.now_ms();
  return id;
}

Result<ListenerPtr> StreamHub::accept_client(const std::string& id) {
  ListenerPtr listener;
  std::string instance_id;
  codec::ServerStream asked;
  {
    const std::lock_guard lock(mutex_);
    sweep();
    const auto found = streams_.find(id);
    if (found == streams_.end() || found->second.has_client) {
      return fail(ErrorCode::kInvalidParameter,
                  "no stream of this id waits for its client; Cotenant.OpenStream makes one");
    }
    Stream& stream = found->second;
    stream.has_client = true;
    stream.at_ms = clock_.now_ms();
    listener = stream.relay->listener(StreamRelay::kClient);
    instance_id = stream.instance_id;
    asked = stream.asked;
  }
  if (ask_(instance_id, asked)) return listener;
  const std::lock_guard lock(mutex_);
  streams_.erase(id);
  return fail(ErrorCode::kUnavailable,
              fmt::format("the agent of instance {} is not connected", instance_id));
}

Result<ListenerPtr> StreamHub::accept_agent(const std::string& id, const std::string& instance_id) {
  const std::lock_guard lock(mutex_);
  sweep();
  const auto found = streams_.find(id);
  if (found == streams_.end() || !found->second.has_client || found->second.has_agent ||
      (!instance_id.empty() && instance_id != found->second.instance_id)) {
    return fail(ErrorCode::kInvalidParameter, "no stream of this id waits for this agent");
  }
  found->second.has_agent = true;
  found->second.at_ms = clock_.now_ms();
  return found->second.relay->listener(StreamRelay::kAgent);
}

}  // namespace cotenant::server
