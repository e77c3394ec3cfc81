#include "mps/v3_spec.h"

#include <fmt/format.h>

#include "common/pinned_limit.h"
#include "common/text.h"

namespace gpusim::mps {
namespace {

// Limits are kept in whole MiB.
bool parse_v3_size(std::string_view text, uint64_t* bytes) {
  if (text.empty() || (text.back() != 'K' && text.back() != 'k')) {
    return parse_memory_size(text, bytes);
  }
  text.remove_suffix(1);
  uint64_t kib = 0;
  if (!parse_number(text, &kib) || kib < 1024 || kib > UINT64_MAX / 1024) return false;
  *bytes = kib / 1024 * kMiB;
  return true;
}

}  // namespace

bool is_v3_name(std::string_view name) {
  constexpr size_t kMaxName = 64;
  if (name.empty() || name.size() > kMaxName) return false;
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

std::optional<std::string> set_v3_limit(std::string_view value, ClientDefaults* defaults) {
  LimitTable limits;
  std::string_view rest = value;
  while (!rest.empty()) {
    std::string_view size = take_field(&rest, ',');
    std::string_view key = kEachDevice;
    if (size.find('=') != std::string_view::npos) key = trim(take_field(&size, '='));
    uint64_t bytes = 0;
    if (key.empty() || !parse_v3_size(trim(size), &bytes) || !limits.has_room_for(key)) {
      return fmt::format("'{}' is no memory limit: a whole number with K, M or G is expected",
                         value);
    }
    limits.set(key, bytes);
  }
  if (limits.entries().empty()) return "a memory limit is expected, for example 10G";
  defaults->limits = limits;
  return std::nullopt;
}

std::optional<std::string> set_v3_percentage(std::string_view value, ClientDefaults* defaults) {
  const uint32_t hundredths = parse_thread_percentage(std::string(value).c_str());
  if (hundredths == 0) {
    return fmt::format("'{}' is no active thread percentage: above 0 and at most 100", value);
  }
  defaults->hundredths = hundredths;
  return std::nullopt;
}

std::optional<std::string> set_v3_priority(std::string_view value, ClientDefaults* defaults) {
  if (value != "0" && value != "1") {
    return fmt::format("'{}' is no client priority: 0 (normal) or 1 (below normal)", value);
  }
  defaults->priority = value == "1" ? 1 : 0;
  return std::nullopt;
}

std::optional<std::string> check_v3_devices(std::string_view value) {
  while (!value.empty()) {
    const std::string_view uuid = trim(take_field(&value, ','));
    if (uuid.starts_with("GPU-") && uuid.size() > 4 && uuid.size() < kLimitKeySize) continue;
    if (uuid.starts_with("MIG-") && uuid.size() > 4 && uuid.size() < kLimitKeySize) continue;
    uint64_t ordinal = 0;
    if (parse_number(uuid, &ordinal) && ordinal < kMaxDevices) continue;
    return fmt::format("'{}' is no device: UUIDs or ordinals between commas are expected", uuid);
  }
  return std::nullopt;
}

std::string show_v3_limit(const ClientDefaults& defaults) {
  std::string out;
  for (const LimitTable::Entry& entry : defaults.limits.entries()) {
    if (!out.empty()) out += ',';
    if (entry.key != kEachDevice) out += entry.key + "=";
    out += show_limit(entry.bytes);
  }
  return out.empty() ? "-" : out;
}

}  // namespace gpusim::mps
