// sm_partition and lspart, of a daemon with -S.
#include <fmt/format.h>

#include <algorithm>

#include "common/text.h"
#include "mps/control_daemon.h"

namespace gpusim::mps {
namespace {

constexpr const char* kInvalid = "Invalid argument\n";  // ours

}  // namespace

// Clients that chose the partition; its id is where v3 has their namespace.
size_t ControlDaemon::clients_of_partition(std::string_view name) const {
  size_t count = 0;
  for (const Server& server : servers_) {
    count += static_cast<size_t>(
        std::count_if(server.clients.begin(), server.clients.end(),
                      [name](const ServerClient& client) { return client.space == name; }));
  }
  return count;
}

std::string ControlDaemon::sm_partition(Console*, const Words& words) {
  if (words[1] == "add") {
    uint64_t chunks = 0;
    if (!parse_number(words[3], &chunks)) return kInvalid;
    const auto name = partitions_.add(words[2], chunks);
    return name ? *name + "\n" : kInvalid;
  }
  if (words[1] != "rm") return kInvalid;
  const bool has_gpu = words[3].find('/') != std::string::npos;
  const std::string name = has_gpu ? words[3] : fmt::format("{}/{}", words[2], words[3]);
  if (clients_of_partition(name) != 0) return "Partition is in use\n";  // ours
  return partitions_.remove(words[2], words[3]) ? "" : kInvalid;
}

// A line for each partition and one for what is left of each GPU. Widths ours.
std::string ControlDaemon::lspart(Console*, const Words&) {
  const auto row = [](const auto&... columns) {
    return fmt::format("{:<41} {:<10} {:<12} {:<12} {:<9} {:<9} {}\n", columns...);
  };
  std::string out =
      row("GPU", "PARTITION", "FREE-CHUNKS", "USED-CHUNKS", "FREE-SMS", "USED-SMS", "CLIENTS");
  constexpr uint32_t kSms = SmPartitions::kSmsPerChunk;
  for (const std::string& gpu : partitions_.gpus()) {
    const uint32_t free = partitions_.free_chunks(gpu);
    const uint32_t used = partitions_.total_chunks(gpu) - free;
    out += row(gpu, "-", free, used, free * kSms, used * kSms, "-");
    for (const SmPartitions::Row& part : partitions_.rows(gpu)) {
      out += row(gpu, part.id, "-", part.chunks, "-", part.chunks * kSms,
                 clients_of_partition(fmt::format("{}/{}", gpu, part.id)));
    }
  }
  return out;
}

}  // namespace gpusim::mps
