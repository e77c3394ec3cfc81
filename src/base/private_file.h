// Small files that hold secrets, or state that a crash must leave either old or new: readable by their
// owner only, replaced as a whole.
//
// Errors: kIo, naming the file, what is wrong with it and the remedy.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cotenant::base {

enum class Privacy {
  kOwner,  // refused when others may read or write it, or when it is another user's
  kAny,    // whoever uses a file that was copied to him answers for it himself
};

// The file's text, at most 1 MiB; nothing where there is no file. Only plain files.
Result<std::optional<std::string>> read_private_file(const std::string& path,
                                                     Privacy privacy = Privacy::kOwner);

// With mode 0600; durable when it returns: a crash leaves the old file or the new one.
Status write_private_file(const std::string& path, std::string_view text);

}  // namespace cotenant::base
