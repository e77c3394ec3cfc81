// An exclusive flock on a file, held until the object goes. The kernel lifts it when the process
// ends, however it ends. The file stays: removing it would let two holders lock two files of one
// name. It holds the pid of its last holder, for people.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace cotenant::base {

class FileLock {
 public:
  // Does not wait. Errors: kConflict (held by another, whose pid is named), kUnavailable (the file
  // cannot be made or locked).
  static Result<FileLock> acquire(const std::string& path);

 private:
  explicit FileLock(UniqueFd file) : file_(std::move(file)) {}

  UniqueFd file_;
};

}  // namespace cotenant::base
