#include "common/text.h"

#include <cstring>

#include "common/models.h"

namespace gpusim {

bool copy_text(std::string_view from, char* to, size_t size) {
  const size_t length = from.size() < size ? from.size() : size - 1;
  memcpy(to, from.data(), length);
  to[length] = '\0';
  return length == from.size();
}

std::string_view take_field(std::string_view* rest, char separator) {
  const size_t at = rest->find(separator);
  if (at == std::string_view::npos) {
    const std::string_view field = *rest;
    *rest = std::string_view(rest->data() + rest->size(), 0);
    return field;
  }
  const std::string_view field(rest->data(), at);
  rest->remove_prefix(at + 1);
  return field;
}

bool parse_number(std::string_view text, uint64_t* value) {
  if (text.empty()) return false;
  uint64_t result = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    if (__builtin_mul_overflow(result, uint64_t{10}, &result) ||
        __builtin_add_overflow(result, static_cast<uint64_t>(c - '0'), &result)) {
      return false;
    }
  }
  *value = result;
  return true;
}

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool names_uuid(std::string_view text, std::string_view uuid) {
  constexpr size_t kPrefixSize = 4;  // "GPU-", "MIG-"
  return text.size() > kPrefixSize && text.size() <= uuid.size() &&
         memcmp(text.data(), uuid.data(), text.size()) == 0;
}

bool parse_memory_size(std::string_view text, uint64_t* bytes) {
  if (!text.empty() && (text.back() == 'B' || text.back() == 'b')) text.remove_suffix(1);
  if (text.empty()) return false;
  uint64_t unit = 0;
  if (text.back() == 'M' || text.back() == 'm') unit = kMiB;
  if (text.back() == 'G' || text.back() == 'g') unit = 1024 * kMiB;
  if (unit == 0) return false;
  text.remove_suffix(1);
  uint64_t amount = 0;
  return parse_number(text, &amount) && amount > 0 && !__builtin_mul_overflow(amount, unit, bytes);
}

}  // namespace gpusim
