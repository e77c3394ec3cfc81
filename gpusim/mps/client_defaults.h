// What a client gets that brings nothing of its own: kept by the daemon for the next server, by a
// server for its next client (a snapshot of the former), and by an MPS v3 namespace.
#pragma once

#include <cstdint>

#include "mps/channel.h"
#include "mps/limits.h"

namespace gpusim::mps {

struct ClientDefaults {
  LimitTable limits;
  uint32_t hundredths = 10000;  // active thread percentage
  uint32_t priority = 0;        // 0 normal, 1 below normal
};

void put_defaults(const ClientDefaults& defaults, ChannelMessage* message);
ClientDefaults take_defaults(const ChannelMessage& message);

}  // namespace gpusim::mps
