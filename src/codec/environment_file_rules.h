// What environmentFiles may name, in a task definition and in an override. Pure. Source: ECS API
// reference, EnvironmentFile; the files are the instance's, not S3's.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cotenant::codec {

// `prefix`: what stands before "environmentFiles" in messages. Errors: kInvalidParameter,
// kUnsupportedFeature.
base::Status check_environment_files(const std::vector<std::string>& files,
                                     const std::string& prefix);

}  // namespace cotenant::codec
