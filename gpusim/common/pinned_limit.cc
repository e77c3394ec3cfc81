#include "common/pinned_limit.h"

#include <string_view>

#include "common/text.h"

namespace gpusim {

void apply_pinned_limits(const char* text, const VisibleDevice* devices, uint32_t count,
                         uint64_t* limits) {
  if (text == nullptr) return;
  std::string_view rest(text);
  while (!rest.empty()) {
    std::string_view value = take_field(&rest, ',');
    if (value.find('=') == std::string_view::npos) continue;
    const std::string_view key = trim(take_field(&value, '='));
    uint64_t bytes = 0;
    if (!parse_memory_size(trim(value), &bytes)) continue;
    uint64_t ordinal = 0;
    if (parse_number(key, &ordinal)) {
      if (ordinal < count) limits[devices[ordinal].driver_index] = bytes;
      continue;
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (names_uuid(key, devices[i].info.uuid)) limits[devices[i].driver_index] = bytes;
    }
  }
}

bool names_unknown_device(const char* text, const VisibleDevice* devices, uint32_t count) {
  if (text == nullptr) return false;
  std::string_view rest(text);
  while (!rest.empty()) {
    std::string_view value = take_field(&rest, ',');
    if (value.find('=') == std::string_view::npos) continue;
    const std::string_view key = trim(take_field(&value, '='));
    uint64_t bytes = 0;
    if (!parse_memory_size(trim(value), &bytes)) continue;
    uint64_t ordinal = 0;
    bool known = parse_number(key, &ordinal) && ordinal < count;
    for (uint32_t i = 0; i < count && !known; ++i) known = names_uuid(key, devices[i].info.uuid);
    if (!known) return true;
  }
  return false;
}

uint32_t parse_thread_percentage(const char* text) {
  if (text == nullptr) return 0;
  std::string_view fraction = trim(text);
  const std::string_view whole = take_field(&fraction, '.');
  uint64_t percent = 0;
  if (!parse_number(whole, &percent) || percent > 100) return 0;
  uint64_t hundredths = 0;
  for (size_t i = 0; i < 2; ++i) {
    hundredths *= 10;
    if (i < fraction.size()) {
      if (fraction[i] < '0' || fraction[i] > '9') return 0;
      hundredths += static_cast<uint64_t>(fraction[i] - '0');
    }
  }
  const uint64_t all = percent * 100 + hundredths;
  return all <= 10000 ? static_cast<uint32_t>(all) : 0;
}

}  // namespace gpusim
