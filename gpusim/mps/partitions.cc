#include "mps/partitions.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text.h"

namespace gpusim::mps {
namespace {

constexpr uint32_t kAmpereMajor = 8;
constexpr uint32_t kHopperMajor = 9;
constexpr size_t kMaxPartitions = 4096;
constexpr size_t kIdSize = 36;

// "Dx4AAA...", then "Cx4AAA..." as in the documentation's example; of v3 "Kp8AAA...".
std::string partition_id(SmPartitions::Dialect dialect, uint32_t number) {
  const bool is_v2 = dialect == SmPartitions::Dialect::kV2;
  const uint32_t first = (is_v2 ? 'D' : 'K') - 'A';
  std::string id(1, static_cast<char>('A' + (first + 26 - number % 26) % 26));
  id += is_v2 ? "x4" : "p8";
  for (uint32_t rest = number / 26; rest != 0; rest /= 26) {
    id += static_cast<char>('A' + rest % 26);
  }
  id.resize(kIdSize, 'A');
  return id;
}

uint32_t chunk_sms(const DeviceInfo& device, SmPartitions::Dialect dialect) {
  if (device.cc_major < kAmpereMajor) return 0;
  if (device.cc_major >= kHopperMajor) return 8;
  return dialect == SmPartitions::Dialect::kV2 ? 4 : 2;
}

}  // namespace

void SmPartitions::set_devices(const std::vector<DeviceInfo>& devices) {
  devices_.clear();
  for (const DeviceInfo& info : devices) {
    devices_.push_back({info.uuid, info.sm_count, chunk_sms(info, dialect_)});
  }
}

std::optional<std::string> SmPartitions::find_device(std::string_view text) const {
  uint64_t ordinal = 0;
  if (dialect_ == Dialect::kV3 && parse_number(text, &ordinal)) {
    if (ordinal >= devices_.size()) return std::nullopt;
    return devices_[ordinal].uuid;
  }
  std::optional<std::string> found;
  for (const Device& device : devices_) {
    if (!names_uuid(text, device.uuid)) continue;
    if (found) return std::nullopt;  // not unique
    found = device.uuid;
  }
  return found;
}

const SmPartitions::Device* SmPartitions::device(std::string_view uuid) const {
  for (const Device& device : devices_) {
    if (device.uuid == uuid) return &device;
  }
  return nullptr;
}

uint32_t SmPartitions::total_sms(std::string_view gpu) const {
  const Device* found = device(gpu);
  return found == nullptr || found->chunk_sms == 0 ? 0 : found->sms;
}

uint32_t SmPartitions::total_chunks(std::string_view gpu) const {
  const Device* found = device(gpu);
  return found == nullptr || found->chunk_sms == 0 ? 0 : found->sms / found->chunk_sms;
}

uint32_t SmPartitions::free_chunks(std::string_view gpu) const {
  uint32_t free = total_chunks(gpu);
  for (const Row& row : rows_) {
    if (row.gpu == gpu && !row.id.empty()) free -= row.chunks;
  }
  return free;
}

uint32_t SmPartitions::free_sms(std::string_view gpu) const {
  uint32_t free = total_sms(gpu);
  for (const Row& row : rows_) {
    if (row.gpu == gpu && !row.id.empty()) free -= row.sms;
  }
  return free;
}

bool SmPartitions::create(Row* row) {
  const auto gpu = find_device(row->gpu);
  if (!gpu || row->chunks == 0 || row->chunks > free_chunks(*gpu)) return false;
  const Device& on = *device(*gpu);
  row->sms = row->chunks * on.chunk_sms;
  const uint32_t remainder = on.sms % on.chunk_sms;
  const bool is_last = row->chunks == free_chunks(*gpu);
  const bool remainder_is_free = free_sms(*gpu) >= row->sms + remainder;
  const bool takes = dialect_ == Dialect::kV2 ? is_last : row->include_remainder;
  if (takes && remainder_is_free) row->sms += remainder;
  row->gpu = *gpu;
  row->id = partition_id(dialect_, next_++);
  row->number = next_;
  return true;
}

const SmPartitions::Row* SmPartitions::add(const PartitionSpec& spec) {
  if (rows_.size() >= kMaxPartitions) return nullptr;
  Row row;
  row.gpu = spec.gpu;
  row.name = spec.name;
  row.chunks = spec.chunks;
  row.include_remainder = spec.include_remainder;
  if (!create(&row)) return nullptr;
  rows_.push_back(row);
  return &rows_.back();
}

void SmPartitions::configure(const PartitionSpec& spec) {
  if (rows_.size() >= kMaxPartitions) return;
  Row& row = rows_.emplace_back();
  row.gpu = spec.gpu;
  row.name = spec.name;
  row.chunks = spec.chunks;
  row.include_remainder = spec.include_remainder;
}

std::vector<std::string> SmPartitions::create_configured() {
  std::vector<std::string> failed;
  for (Row& row : rows_) {
    if (row.id.empty() && !create(&row)) failed.push_back(row.name);
  }
  return failed;
}

void SmPartitions::forget_created() {
  for (Row& row : rows_) {
    row.id.clear();
    row.sms = 0;
    row.number = 0;
  }
}

bool SmPartitions::remove(std::string_view gpu, std::string_view id_or_name) {
  const std::string uuid = find_device(gpu).value_or(std::string(gpu));
  const size_t slash = id_or_name.find('/');
  if (slash != std::string_view::npos) {
    if (!names_uuid(id_or_name.substr(0, slash), uuid)) return false;
    id_or_name.remove_prefix(slash + 1);
  }
  return !id_or_name.empty() &&
         std::erase_if(rows_, [&](const Row& row) {
           // What is configured only may name its GPU otherwise.
           return (row.gpu == uuid || row.gpu == gpu) &&
                  (dialect_ == Dialect::kV2 ? row.id : row.name) == id_or_name;
         }) != 0;
}

const SmPartitions::Row* SmPartitions::find(std::string_view value) const {
  const std::string_view text = trim(value);
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return nullptr;
  const auto gpu = find_device(text.substr(0, slash));
  const std::string_view id = text.substr(slash + 1);
  if (!gpu || id.empty()) return nullptr;
  for (const Row& row : rows_) {
    if (row.gpu == *gpu && row.id == id) return &row;
  }
  return nullptr;
}

uint32_t SmPartitions::hundredths(const Row& row) const {
  const uint32_t all = total_sms(row.gpu);
  return all == 0 ? 0 : (row.sms * 10000 + all - 1) / all;
}

bool SmPartitions::is_divided(std::string_view gpu) const {
  return std::any_of(rows_.begin(), rows_.end(),
                     [gpu](const Row& row) { return row.gpu == gpu && !row.id.empty(); });
}

std::vector<std::string> SmPartitions::gpus() const {
  std::vector<std::string> out;
  for (const Device& device : devices_) {
    if (device.chunk_sms != 0) out.push_back(device.uuid);
  }
  return out;
}

}  // namespace gpusim::mps
