// CUDA runtime API: memory.
#include "cudart/runtime.h"

using gpusim::cudart::call;
using gpusim::cudart::DevicePointer;
using gpusim::cudart::enter;
using gpusim::cudart::remember;

namespace {

DevicePointer address(const void* pointer) {
  return static_cast<DevicePointer>(reinterpret_cast<uintptr_t>(pointer));
}

void* pointer_to(DevicePointer at) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(at));
}

// Calls a driver function that hands out device memory.
template <typename... Parameters>
cudaError_t allocate(void** pointer, size_t bytes, const char* name, Parameters... more) {
  if (pointer == nullptr) return kCudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return kCudaSuccess;
  DevicePointer at = 0;
  cudaError_t error = enter();
  if (error == kCudaSuccess) error = call(name, &at, bytes, more...);
  if (error == kCudaSuccess) *pointer = pointer_to(at);
  return error;
}

cudaError_t copy(void* to, const void* from, size_t bytes, int kind, void* stream, bool is_async) {
  constexpr int kHostToHost = 0;
  constexpr int kDefault = 4;
  if (kind < kHostToHost || kind > kDefault) return 21;  // cudaErrorInvalidMemcpyDirection
  const cudaError_t error = enter();
  if (error != kCudaSuccess || bytes == 0) return error;
  // Unified addressing: the driver sees where either end is.
  return is_async ? call("cuMemcpyAsync", address(to), address(from), bytes, stream)
                  : call("cuMemcpy", address(to), address(from), bytes);
}

}  // namespace

GPUSIM_CUDART cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return remember(allocate(pointer, bytes, "cuMemAlloc_v2"));
}

GPUSIM_CUDART cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  return remember(allocate(pointer, bytes, "cuMemAllocManaged", flags));
}

GPUSIM_CUDART cudaError_t cudaMallocAsync(void** pointer, size_t bytes, void* stream) {
  return remember(allocate(pointer, bytes, "cuMemAllocAsync", stream));
}

GPUSIM_CUDART cudaError_t cudaFree(void* pointer) {
  const cudaError_t error = enter();
  return remember(
      error != kCudaSuccess || pointer == nullptr ? error : call("cuMemFree_v2", address(pointer)));
}

GPUSIM_CUDART cudaError_t cudaFreeAsync(void* pointer, void* stream) {
  const cudaError_t error = enter();
  return remember(error != kCudaSuccess || pointer == nullptr
                      ? error
                      : call("cuMemFreeAsync", address(pointer), stream));
}

GPUSIM_CUDART cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  const cudaError_t error = enter();
  return remember(error != kCudaSuccess ? error : call("cuMemHostAlloc", pointer, bytes, flags));
}

GPUSIM_CUDART cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

GPUSIM_CUDART cudaError_t cudaFreeHost(void* pointer) {
  const cudaError_t error = enter();
  return remember(error != kCudaSuccess || pointer == nullptr ? error
                                                              : call("cuMemFreeHost", pointer));
}

GPUSIM_CUDART cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const cudaError_t error = enter();
  return remember(error != kCudaSuccess ? error : call("cuMemGetInfo_v2", free_bytes, total_bytes));
}

GPUSIM_CUDART cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, int kind) {
  return remember(copy(to, from, bytes, kind, nullptr, false));
}

GPUSIM_CUDART cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind,
                                          void* stream) {
  return remember(copy(to, from, bytes, kind, stream, true));
}

GPUSIM_CUDART cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  const cudaError_t error = enter();
  if (error != kCudaSuccess || bytes == 0) return remember(error);
  return remember(
      call("cuMemsetD8_v2", address(pointer), static_cast<unsigned char>(value), bytes));
}

GPUSIM_CUDART cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, void* stream) {
  const cudaError_t error = enter();
  if (error != kCudaSuccess || bytes == 0) return remember(error);
  return remember(
      call("cuMemsetD8Async", address(pointer), static_cast<unsigned char>(value), bytes, stream));
}
