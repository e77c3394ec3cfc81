#include "mps/limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/pinned_limit.h"
#include "common/text.h"
#include "mps/channel.h"

namespace gpusim::mps {

bool LimitTable::has_room_for(std::string_view key) const {
  return key.size() < kLimitKeySize && (get(key) || entries_.size() < kMaxLimitKeys);
}

void LimitTable::set(std::string_view key, uint64_t bytes) {
  std::erase_if(entries_, [key](const Entry& entry) { return entry.key == key; });
  entries_.push_back({std::string(key), bytes});
}

std::optional<uint64_t> LimitTable::get(std::string_view key) const {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return entry.bytes;
  }
  return std::nullopt;
}

void LimitTable::drop_uuids() {
  std::erase_if(entries_, [](const Entry& entry) { return entry.key.starts_with("GPU-"); });
}

void LimitTable::set_from_environment(const char* text) {
  if (text == nullptr) return;
  std::string_view rest(text);
  while (!rest.empty()) {
    std::string_view value = take_field(&rest, ',');
    const std::string_view key = trim(take_field(&value, '='));
    uint64_t bytes = 0;
    if (key.empty() || !parse_memory_size(trim(value), &bytes) || !has_room_for(key)) continue;
    set(key, bytes);
  }
}

void LimitTable::resolve(const std::vector<VisibleDevice>& devices, uint64_t* limits) const {
  for (const Entry& entry : entries_) {
    if (entry.key == "*") {
      for (const VisibleDevice& device : devices) limits[device.driver_index] = entry.bytes;
      continue;
    }
    const std::string text = fmt::format("{}={}M", entry.key, entry.bytes / kMiB);
    apply_pinned_limits(text.c_str(), devices.data(), static_cast<uint32_t>(devices.size()),
                        limits);
  }
}

std::string show_limit(uint64_t bytes) {
  constexpr uint64_t kGiB = 1024 * kMiB;
  return bytes >= kGiB ? fmt::format("{}G", bytes / kGiB) : fmt::format("{}M", bytes / kMiB);
}

std::string show_percent(uint32_t hundredths) {
  return fmt::format("{}.{}", hundredths / 100, hundredths % 100 / 10);
}

}  // namespace gpusim::mps
