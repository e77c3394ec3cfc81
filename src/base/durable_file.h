// Small files that a crash must leave either old or new. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cotenant::base {

// Writes "<path>.new" (0600), syncs it, renames it over `path`, syncs the folder. Errors: kIo, with
// the path.
Status replace_file(const std::string& path, std::string_view text);

}  // namespace cotenant::base
