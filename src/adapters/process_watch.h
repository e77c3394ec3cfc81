// Tells when something happens in the folder of the `process` runtime. Shims touch their container's
// folder when its program runs and when it has ended. Any thread.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/result.h"

namespace cotenant::adapters {

// Until a stop is requested (success). Errors: kUnavailable (the folder goes, or inotify refuses).
base::Status watch_process_folder(const std::string& folder, const std::function<void()>& on_change,
                                  std::stop_token stop);

}  // namespace cotenant::adapters
