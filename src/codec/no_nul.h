// A program's arguments and environment end at a NUL: a text with one cannot reach it whole.
#pragma once

#include <string>

#include "base/result.h"
#include "codec/json.h"

namespace cotenant::codec {

// Looks into every string of the value. Errors: kInvalidParameter, naming the member.
base::Status check_no_nul(const Json& json, const std::string& path);

}  // namespace cotenant::codec
