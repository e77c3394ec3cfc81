// Reads a text file line by line; one whose name ends in .xz is decompressed on the way. Memory is
// bounded by one line (64 KiB; a longer one is refused).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cotenant::replay {

// Lines without their end, numbered from 1; stops at the first error that `take` returns.
// Errors: kIo (cannot be read, with the reason), kInvalidParameter (no xz file, a line too long).
base::Status read_lines(const std::string& path,
                        const std::function<base::Status(std::string_view, std::size_t)>& take);

}  // namespace cotenant::replay
