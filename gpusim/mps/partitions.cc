#include "mps/partitions.h"

#include <fmt/format.h>

namespace gpusim::mps {
namespace {

constexpr uint32_t kAmpereMajor = 8;
constexpr size_t kMaxPartitions = 4096;

// 0 is "Dx4AAAAA".
std::string partition_id(uint32_t number) {
  std::string letters;
  for (int i = 0; i < 5; ++i) {
    letters.insert(letters.begin(), static_cast<char>('A' + number % 26));
    number /= 26;
  }
  return "Dx4" + letters;
}

}  // namespace

void SmPartitions::set_devices(const std::vector<DeviceInfo>& devices) {
  for (const DeviceInfo& device : devices) {
    if (device.cc_major >= kAmpereMajor) sm_counts_[device.uuid] = device.sm_count;
  }
}

uint32_t SmPartitions::total_chunks(std::string_view gpu) const {
  const auto found = sm_counts_.find(gpu);
  return found == sm_counts_.end() ? 0 : found->second / kSmsPerChunk;
}

uint32_t SmPartitions::free_chunks(std::string_view gpu) const {
  uint32_t free = total_chunks(gpu);
  for (const auto& [name, row] : partitions_) {
    if (row.gpu == gpu) free -= row.chunks;
  }
  return free;
}

std::optional<std::string> SmPartitions::add(std::string_view gpu, uint64_t chunks) {
  if (chunks == 0 || chunks > free_chunks(gpu) || partitions_.size() >= kMaxPartitions) {
    return std::nullopt;
  }
  const std::string id = partition_id(next_id_++);
  const std::string name = fmt::format("{}/{}", gpu, id);
  partitions_[name] = Row{std::string(gpu), id, static_cast<uint32_t>(chunks)};
  return name;
}

bool SmPartitions::remove(std::string_view gpu, std::string_view id) {
  const size_t slash = id.find('/');
  const std::string name =
      slash == std::string_view::npos ? fmt::format("{}/{}", gpu, id) : std::string(id);
  return name.starts_with(gpu) && partitions_.erase(name) != 0;
}

std::optional<uint32_t> SmPartitions::hundredths(std::string_view name) const {
  const auto found = partitions_.find(name);
  if (found == partitions_.end()) return std::nullopt;
  const uint32_t sms = sm_counts_.find(found->second.gpu)->second;
  return found->second.chunks * kSmsPerChunk * 10000 / sms;
}

std::vector<SmPartitions::Row> SmPartitions::rows(std::string_view gpu) const {
  std::vector<Row> out;
  for (const auto& [name, row] : partitions_) {
    if (row.gpu == gpu) out.push_back(row);
  }
  return out;
}

std::vector<std::string> SmPartitions::gpus() const {
  std::vector<std::string> out;
  for (const auto& [uuid, count] : sm_counts_) out.push_back(uuid);
  return out;
}

}  // namespace gpusim::mps
