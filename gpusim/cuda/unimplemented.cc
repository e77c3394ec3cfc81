#include "cuda/cuda_types.h"

// Callers pass arguments; the x86-64 and aarch64 calling conventions let a callee ignore them.
#define GPUSIM_UNIMPLEMENTED(name)   \
  GPUSIM_CUDA name() {               \
    return CUDA_ERROR_NOT_SUPPORTED; \
  }
#include "cuda/unimplemented.inc"
