#include "core/query/query_values.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/rfc3339.h"

namespace cotenant::core {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Without leading zeros, so that the longer one is the larger one: no overflow, whatever comes.
std::string_view take_version_number(std::string_view& rest) {
  std::size_t end = 0;
  while (end < rest.size() && is_digit(rest[end])) ++end;
  std::string_view digits = rest.substr(0, end);
  rest.remove_prefix(end);
  if (rest.starts_with('.') && rest.size() > 1 && is_digit(rest[1])) rest.remove_prefix(1);
  while (!digits.empty() && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

std::optional<std::int64_t> parse_query_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<base::TimeMs> parse_query_time(std::string_view text) {
  constexpr std::size_t kDateChars = 10;
  constexpr std::size_t kDateTimeChars = 19;
  std::string full(text);
  if (text.size() == kDateChars) full += "T00:00:00Z";
  if (text.size() == kDateTimeChars) full += "Z";
  const base::Result<base::TimeMs> time = base::parse_rfc3339(full);
  if (!time) return std::nullopt;
  return *time;
}

bool is_query_version(std::string_view text) {
  const std::size_t end = text.find_first_of("-+");
  const std::string_view numbers = text.substr(0, end);
  if (numbers.empty() || !is_digit(numbers.front()) || !is_digit(numbers.back())) return false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == '.' ? numbers[i + 1] == '.' : !is_digit(numbers[i])) return false;
  }
  return true;
}

std::strong_ordering compare_versions(std::string_view a, std::string_view b) {
  const auto at_number = [](std::string_view text) { return !text.empty() && is_digit(text[0]); };
  while (at_number(a) || at_number(b)) {
    const std::string_view x = take_version_number(a);
    const std::string_view y = take_version_number(b);
    if (x.size() != y.size()) return x.size() <=> y.size();
    if (x != y) return x <=> y;
  }
  const bool a_before = a.starts_with('-');
  const bool b_before = b.starts_with('-');
  if (a_before != b_before) return b_before <=> a_before;
  return a <=> b;
}

std::strong_ordering compare_query_texts(std::string_view a, std::string_view b) {
  const std::optional<std::int64_t> x = parse_query_integer(a);
  const std::optional<std::int64_t> y = parse_query_integer(b);
  return x && y ? *x <=> *y : a <=> b;
}

}  // namespace cotenant::core
