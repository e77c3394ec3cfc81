// Where the daemon, its console and its server meet: CUDA_MPS_PIPE_DIRECTORY and
// CUDA_MPS_LOG_DIRECTORY. No flag chooses them.
#pragma once

#include <string>
#include <vector>

namespace gpusim::mps {

// v3's default for root is another.
void use_v3_paths();
std::string pipe_directory();
// Where a console looks for a daemon, whose protocol it does not know.
std::vector<std::string> console_directories();
std::string log_directory();

// Files of the pipe directory and their modes (the process's umask must be 0):
//   srw-rw-rw- control                      clients
//   -rw-rw-rw- control_lock                 flock: one daemon per directory
//   srwxr-xr-x control_privileged           the console; owner only
//   prwxrwxrwx log                          FIFO
//   -rw-rw-rw- nvidia-cuda-mps-control.pid  removed at stop; the sockets may stay behind, stale
std::string in_pipe_directory(const char* name);

}  // namespace gpusim::mps
