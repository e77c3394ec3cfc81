#include "mps/paths.h"

#include <cstdlib>
#include <filesystem>

#include "mps/mps_protocol.h"

namespace gpusim::mps {
namespace {

std::string directory(const char* variable, const char* fallback) {
  const char* value = getenv(variable);
  std::error_code ignored;
  const std::filesystem::path path = value != nullptr && value[0] != '\0' ? value : fallback;
  return std::filesystem::absolute(path, ignored).string();
}

}  // namespace

std::string pipe_directory() {
  return directory("CUDA_MPS_PIPE_DIRECTORY", kDefaultPipeDirectory);
}

std::string log_directory() {
  return directory("CUDA_MPS_LOG_DIRECTORY", kDefaultLogDirectory);
}

std::string in_pipe_directory(const char* name) {
  return pipe_directory() + "/" + name;
}

}  // namespace gpusim::mps
