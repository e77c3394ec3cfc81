#include "base/rfc3339.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace cotenant::base {
namespace {

// Takes the text apart from the left; a step that does not match makes all later ones fail.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  int digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value * 10 + digit();
    return value;
  }

  void expect(std::string_view any_of) {
    if (!take(any_of)) failed_ = true;
  }

  std::optional<char> take(std::string_view any_of) {
    if (rest_.empty() || any_of.find(rest_.front()) == std::string_view::npos) return std::nullopt;
    const char taken = rest_.front();
    rest_.remove_prefix(1);
    return taken;
  }

  bool at_digit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
  int digit() {
    if (!at_digit()) {
      failed_ = true;
      return 0;
    }
    const int value = rest_.front() - '0';
    rest_.remove_prefix(1);
    return value;
  }

  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// After the dot: one to nine digits, of which milliseconds are the first three.
int fraction_ms(Scanner& scan) {
  int ms = scan.digit() * 100;
  if (scan.at_digit()) ms += scan.digit() * 10;
  if (scan.at_digit()) ms += scan.digit();
  for (int i = 3; i < 9 && scan.at_digit(); ++i) scan.digit();
  return ms;
}

}  // namespace

Result<TimeMs> parse_rfc3339(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::kProtocol,
                fmt::format("'{:.64}' is not a time such as 2026-12-01T11:51:15.5Z", text));
  };
  Scanner scan(text);
  const int year = scan.digits(4);
  scan.expect("-");
  const int month = scan.digits(2);
  scan.expect("-");
  const int day = scan.digits(2);
  scan.expect("Tt");
  const int hour = scan.digits(2);
  scan.expect(":");
  const int minute = scan.digits(2);
  scan.expect(":");
  const int second = scan.digits(2);
  const int ms = scan.take(".") ? fraction_ms(scan) : 0;
  int offset_minutes = 0;
  if (!scan.take("Zz")) {
    const std::optional<char> sign = scan.take("+-");
    if (!sign) return bad();
    const int zone_hour = scan.digits(2);
    scan.expect(":");
    const int zone_minute = scan.digits(2);
    if (zone_hour > 23 || zone_minute > 59) return bad();
    offset_minutes = (*sign == '-' ? -1 : 1) * (zone_hour * 60 + zone_minute);
  }
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  // Second 60 is a leap second, which RFC 3339 allows.
  if (!scan.complete() || !date.ok() || hour > 23 || minute > 59 || second > 60) return bad();
  if (year == 1 && month == 1 && day == 1) return 0;
  const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  const std::int64_t minutes = (days * 24 + hour) * 60 + minute - offset_minutes;
  return (minutes * 60 + second) * 1000 + ms;
}

}  // namespace cotenant::base
