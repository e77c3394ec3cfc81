// The lock file of a container of the `process` runtime: held by whoever starts it, then by its shim as
// long as that lives. An open file description lock (fcntl(2), F_OFD_SETLK): it goes with its last
// holder however that ends, passes to the shim with the descriptor, and can be asked for without being
// taken. Any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace cotenant::adapters {

// Errors: kNotFound (no such container), kConflict (held), kIo.
base::Result<base::UniqueFd> take_process_lock(const std::string& folder);

// kNotFound, kIo.
base::Result<bool> is_process_locked(const std::string& folder);

base::Status make_process_lock(const std::string& folder);

}  // namespace cotenant::adapters
