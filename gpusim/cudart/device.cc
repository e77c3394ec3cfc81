// CUDA runtime API: devices, errors, versions.
#include <cstring>

#include "cudart/runtime.h"

using gpusim::cudart::call;
using gpusim::cudart::current_device;
using gpusim::cudart::enter;
using gpusim::cudart::enter_driver;
using gpusim::cudart::remember;

namespace {

constexpr int kRuntimeVersion = 13000;

// The beginning of cudaDeviceProp, which has been the same since CUDA 10. What follows differs between
// releases and is left as it was.
struct DevicePropertiesHead {
  char name[256];
  unsigned char uuid[16];
  char luid[8];
  unsigned int luid_device_node_mask;
  size_t total_global_mem;
  size_t shared_mem_per_block;
  int regs_per_block;
  int warp_size;
  size_t mem_pitch;
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  size_t total_const_mem;
  int major;
  int minor;
};
static_assert(offsetof(DevicePropertiesHead, total_global_mem) == 288);
static_assert(offsetof(DevicePropertiesHead, major) == 360);

int attribute(int which, int device) {
  int value = 0;
  call("cuDeviceGetAttribute", &value, which, device);
  return value;
}

cudaError_t properties(DevicePropertiesHead* head, int device) {
  if (head == nullptr) return kCudaErrorInvalidValue;
  cudaError_t error = enter_driver();
  if (error != kCudaSuccess) return error;
  memset(static_cast<void*>(head), 0, sizeof *head);
  error = call("cuDeviceGetName", static_cast<char*>(head->name), 256, device);
  if (error != kCudaSuccess) return error;
  call("cuDeviceGetUuid_v2", static_cast<unsigned char*>(head->uuid), device);
  call("cuDeviceTotalMem_v2", &head->total_global_mem, device);
  head->shared_mem_per_block = static_cast<size_t>(attribute(8, device));
  head->regs_per_block = attribute(12, device);
  head->warp_size = attribute(10, device);
  head->mem_pitch = 0x7fffffff;
  head->max_threads_per_block = attribute(1, device);
  for (int i = 0; i < 3; ++i) head->max_threads_dim[i] = attribute(2 + i, device);
  for (int i = 0; i < 3; ++i) head->max_grid_size[i] = attribute(5 + i, device);
  head->total_const_mem = static_cast<size_t>(attribute(9, device));
  head->major = attribute(75, device);
  head->minor = attribute(76, device);
  return kCudaSuccess;
}

}  // namespace

GPUSIM_CUDART cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return remember(kCudaErrorInvalidValue);
  *count = 0;
  const cudaError_t error = enter_driver();
  return remember(error != kCudaSuccess ? error : call("cuDeviceGetCount", count));
}

GPUSIM_CUDART cudaError_t cudaSetDevice(int device) {
  int count = 0;
  cudaError_t error = enter_driver();
  if (error == kCudaSuccess) error = call("cuDeviceGetCount", &count);
  if (error == kCudaSuccess && (device < 0 || device >= count)) error = kCudaErrorInvalidDevice;
  if (error != kCudaSuccess) return remember(error);
  gpusim::cudart::set_current_device(device);
  return remember(enter());  // since CUDA 12 it makes the context
}

GPUSIM_CUDART cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return remember(kCudaErrorInvalidValue);
  *device = current_device();
  return kCudaSuccess;
}

GPUSIM_CUDART cudaError_t cudaDeviceGetAttribute(int* value, int which, int device) {
  const cudaError_t error = enter_driver();
  return remember(error != kCudaSuccess ? error
                                        : call("cuDeviceGetAttribute", value, which, device));
}

GPUSIM_CUDART cudaError_t cudaGetDeviceProperties(DevicePropertiesHead* head, int device) {
  return remember(properties(head, device));
}

GPUSIM_CUDART cudaError_t cudaGetDeviceProperties_v2(DevicePropertiesHead* head, int device) {
  return remember(properties(head, device));
}

GPUSIM_CUDART cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  const cudaError_t error = enter_driver();
  return remember(error != kCudaSuccess ? error
                                        : call("cuDeviceGetPCIBusId", text, length, device));
}

GPUSIM_CUDART cudaError_t cudaDeviceSynchronize() {
  const cudaError_t error = enter();
  return remember(error != kCudaSuccess ? error : call("cuCtxSynchronize"));
}

GPUSIM_CUDART cudaError_t cudaDriverGetVersion(int* version) {
  return remember(call("cuDriverGetVersion", version));
}

GPUSIM_CUDART cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return remember(kCudaErrorInvalidValue);
  *version = kRuntimeVersion;
  return kCudaSuccess;
}

GPUSIM_CUDART cudaError_t cudaGetLastError() {
  return gpusim::cudart::take_last_error(false);
}

GPUSIM_CUDART cudaError_t cudaPeekAtLastError() {
  return gpusim::cudart::take_last_error(true);
}

GPUSIM_CUDART const char* cudaGetErrorString(cudaError_t error) {
  const char* text = nullptr;
  return call("cuGetErrorString", error, &text) == kCudaSuccess ? text : "unrecognized error code";
}

// The driver's names; the runtime's differ in their beginning (cudaErrorMemoryAllocation).
GPUSIM_CUDART const char* cudaGetErrorName(cudaError_t error) {
  const char* text = nullptr;
  return call("cuGetErrorName", error, &text) == kCudaSuccess ? text : "unrecognized error code";
}
