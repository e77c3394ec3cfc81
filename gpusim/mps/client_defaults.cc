#include "mps/client_defaults.h"

#include <algorithm>

#include "common/text.h"

namespace gpusim::mps {

void put_defaults(const ClientDefaults& defaults, ChannelMessage* message) {
  message->hundredths = defaults.hundredths;
  message->priority = defaults.priority;
  message->count = 0;
  for (const LimitTable::Entry& entry : defaults.limits.entries()) {
    if (message->count == kMaxLimitKeys) break;
    LimitEntry& limit = message->limits[message->count++];
    copy_text(entry.key, limit.key, sizeof limit.key);
    limit.bytes = entry.bytes;
  }
}

ClientDefaults take_defaults(const ChannelMessage& message) {
  ClientDefaults defaults;
  defaults.hundredths = message.hundredths;
  defaults.priority = message.priority;
  for (uint32_t i = 0; i < std::min(message.count, kMaxLimitKeys); ++i) {
    defaults.limits.set(message.limits[i].key, message.limits[i].bytes);
  }
  return defaults;
}

}  // namespace gpusim::mps
