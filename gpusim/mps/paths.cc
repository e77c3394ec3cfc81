#include "mps/paths.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "mps/mps_protocol.h"

namespace gpusim::mps {
namespace {

const char* default_pipe_directory = kDefaultPipeDirectory;

std::string directory(const char* variable, const char* fallback) {
  const char* value = getenv(variable);
  std::error_code ignored;
  const std::filesystem::path path = value != nullptr && value[0] != '\0' ? value : fallback;
  return std::filesystem::absolute(path, ignored).string();
}

}  // namespace

void use_v3_paths() {
  if (geteuid() == 0) default_pipe_directory = kDefaultV3PipeDirectory;
}

std::string pipe_directory() {
  return directory("CUDA_MPS_PIPE_DIRECTORY", default_pipe_directory);
}

std::vector<std::string> console_directories() {
  const char* value = getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (value != nullptr && value[0] != '\0') return {pipe_directory()};
  return {kDefaultPipeDirectory, kDefaultV3PipeDirectory};
}

std::string log_directory() {
  return directory("CUDA_MPS_LOG_DIRECTORY", kDefaultLogDirectory);
}

std::string in_pipe_directory(const char* name) {
  return pipe_directory() + "/" + name;
}

}  // namespace gpusim::mps
