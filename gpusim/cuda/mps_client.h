// The client's side of MPS: does this process go through a server, and does that take it?
#pragma once

#include "cuda/cuda_types.h"
#include "mps/mps_protocol.h"

namespace gpusim::cuda {

struct MpsConnection {
  bool via_mps = false;  // false: a plain process, without limits
  int fd = -1;           // stays open for the life of the process
  mps::ClientWelcome welcome = {};
};

// Looks for `control` in CUDA_MPS_PIPE_DIRECTORY, or in /tmp/nvidia-mps when that is unset, as CUDA
// always does. No such file: a plain process, and CUDA_SUCCESS: that is how a misspelled variable
// escapes all limits. A socket that refuses: CUDA_ERROR_MPS_CONNECTION_FAILED.
CUresult connect_to_mps(const mps::ClientHello& hello, MpsConnection* connection);

}  // namespace gpusim::cuda
