// sm_partition and lspart, of a daemon with -S.
#include <fmt/format.h>

#include <algorithm>

#include "common/text.h"
#include "mps/commands.h"

namespace gpusim::mps {
namespace {

bool has_clients(const DaemonState& state, const SmPartitions::Row& row) {
  const std::string name = row.gpu + "/" + row.id;
  for (const Server& server : state.servers) {
    for (const ServerClient& client : server.clients) {
      if (client.partition == name) return true;
    }
  }
  return false;
}

// The shortest beginning of a UUID that names no other GPU, whole groups of it.
std::string short_gpu(const std::string& uuid, const std::vector<std::string>& gpus) {
  for (size_t at = uuid.find('-', 4); at != std::string::npos; at = uuid.find('-', at + 1)) {
    const std::string part = uuid.substr(0, at);
    const auto same = std::count_if(gpus.begin(), gpus.end(), [&](const std::string& other) {
      return other.starts_with(part);
    });
    if (same == 1) return part;
  }
  return uuid;
}

}  // namespace

std::string sm_partition(ControlDaemon& daemon, Console*, const Words& words) {
  SmPartitions& partitions = daemon.state().partitions;
  if (words[1] == "add") {
    uint64_t chunks = 0;
    if (!parse_number(words[3], &chunks) || chunks > UINT32_MAX) return kInvalidArgument;
    const SmPartitions::Row* row =
        partitions.add({"", words[2], static_cast<uint32_t>(chunks), false});
    return row == nullptr ? kInvalidArgument : fmt::format("{}/{}\n", row->gpu, row->id);
  }
  if (words[1] != "rm") return kInvalidArgument;
  const bool has_gpu = words[3].find('/') != std::string::npos;
  const SmPartitions::Row* row =
      partitions.find(has_gpu ? words[3] : fmt::format("{}/{}", words[2], words[3]));
  if (row != nullptr && has_clients(daemon.state(), *row)) return "Partition is in use\n";  // ours
  return partitions.remove(words[2], words[3]) ? "" : kInvalidArgument;
}

// For each GPU a line of what is left and what is taken, then its partitions. Widths ours.
std::string lspart(ControlDaemon& daemon, Console*, const Words&) {
  const SmPartitions& partitions = daemon.state().partitions;
  const std::vector<std::string> gpus = partitions.gpus();
  const auto row = [](const auto&... columns) {
    return fmt::format("{:<13} {:<36} {:<6} {:<6} {:<5} {:<5} {}\n", columns...);
  };
  std::string out = row("GPU", "Partition", "free", "used", "free", "used", "clients");
  out += row("", "", "chunk", "chunk", "SM", "SM", "");
  for (const std::string& gpu : gpus) {
    const uint32_t free = partitions.free_chunks(gpu);
    const uint32_t free_sms = partitions.free_sms(gpu);
    const std::string name = short_gpu(gpu, gpus);
    out += row(name, "-", free, partitions.total_chunks(gpu) - free, free_sms,
               partitions.total_sms(gpu) - free_sms, "-");
    for (const SmPartitions::Row& part : partitions.rows()) {
      if (part.gpu != gpu) continue;
      out += row(name, part.id, "-", part.chunks, "-", part.sms,
                 has_clients(daemon.state(), part) ? "Yes" : "-");
    }
  }
  return out;
}

}  // namespace gpusim::mps
