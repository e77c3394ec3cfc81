// Times as Go programs print them (RFC 3339 with up to nine fractional digits and a zone):
// "2026-12-01T11:51:15.495363475Z", "2026-12-01T12:51:15+01:00".
#pragma once

#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace cotenant::base {

// Milliseconds since the Unix epoch, rounded down. Go's zero time, "0001-01-01T00:00:00Z", means
// "never" and gives 0. Pure. Errors: kProtocol, with the text.
Result<TimeMs> parse_rfc3339(std::string_view text);

}  // namespace cotenant::base
