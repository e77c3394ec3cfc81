// A small CUDA runtime over the driver API, for programs that were built with `nvcc -cudart shared`:
// NVIDIA's own runtime does not run on a driver that is not NVIDIA's. It finds libcuda.so.1 as that
// one does, by dlopen, and uses public entry points only; so it would run on a real driver too.
//
// cudaError_t has the numbers of CUresult. Device functions are found by the names under which nvcc's
// constructors register them. Programs register before main() and before this library's own
// constructors, so nothing here needs one.
#pragma once

#include <cstddef>
#include <cstdint>

#define GPUSIM_CUDART extern "C" __attribute__((visibility("default")))

using cudaError_t = int;
inline constexpr cudaError_t kCudaSuccess = 0;
inline constexpr cudaError_t kCudaErrorInvalidValue = 1;
inline constexpr cudaError_t kCudaErrorMemoryAllocation = 2;
inline constexpr cudaError_t kCudaErrorInsufficientDriver = 35;
inline constexpr cudaError_t kCudaErrorInvalidDeviceFunction = 98;
inline constexpr cudaError_t kCudaErrorInvalidDevice = 101;
inline constexpr cudaError_t kCudaErrorNotSupported = 801;

namespace gpusim::cudart {

using DevicePointer = unsigned long long;

// The driver's entry point; nullptr without a driver, or if it has none of that name.
void* driver_entry(const char* name);

// 35 without a driver or without the entry point, like a driver that is too old.
template <typename... Parameters>
cudaError_t call(const char* name, Parameters... parameters) {
  void* address = driver_entry(name);
  if (address == nullptr) return kCudaErrorInsufficientDriver;
  return reinterpret_cast<int (*)(Parameters...)>(address)(parameters...);
}

// What every call begins with: cuInit once, and the primary context of the thread's device current.
cudaError_t enter();
// cuInit only.
cudaError_t enter_driver();

int current_device();
void set_current_device(int device);

// Keeps the thread's last error for cudaGetLastError(); returns it.
cudaError_t remember(cudaError_t error);
cudaError_t take_last_error(bool keep);

}  // namespace gpusim::cudart
