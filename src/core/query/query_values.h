// The values that the cluster query language (query.h) compares: times, counts, versions, texts.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace cotenant::core {

// A whole number that fits into 64 bits, with or without a sign; nothing else around it.
std::optional<std::int64_t> parse_query_integer(std::string_view text);

// 2018-06-18T22:28:28+00:00, 2018-06-18T22:28:28Z, 2018-06-18T22:28:28 and 2018-06-18 (ECS developer
// guide); without a zone it is UTC, without a time it is midnight.
std::optional<base::TimeMs> parse_query_time(std::string_view text);

// Digits with dots between them, and what you like after a hyphen or a plus: "1.97.1", "0.2.0-rc1".
bool is_query_version(std::string_view text);
// By numbers ("1.10" is after "1.9", "1.2" equals "1.2.0"); a suffix after a hyphen comes before the
// same version without one, as in semantic versioning. Any text may be given.
std::strong_ordering compare_versions(std::string_view a, std::string_view b);

// As numbers where both are integers, else byte by byte.
std::strong_ordering compare_query_texts(std::string_view a, std::string_view b);

}  // namespace cotenant::core
