// CUDA runtime API: kernels, streams, events. The names that begin with __cuda are called by the code
// that nvcc puts into a program: constructors that register its fat binaries and kernels, and the stub
// of each kernel.
#include <pthread.h>

#include <cstring>

#include "cudart/runtime.h"

using gpusim::cudart::call;
using gpusim::cudart::enter;
using gpusim::cudart::remember;

namespace {

struct Dim3 {
  unsigned int x, y, z;
};

// What a constructor of nvcc's hands over; the image starts at `data`.
struct FatBinary {
  int magic;
  int version;
  const void* data;
  void* unused;
};

constexpr int kMaxDevices = 64;

struct Binary {
  const FatBinary* image;
  void* modules[kMaxDevices];  // by device, loaded with their first launch
};

struct Kernel {
  const void* stub;  // the host function by which the program names it
  const char* name;
  Binary* binary;
  Kernel* next;
};

// Never destroyed: programs end in any order.
pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
Kernel* kernels = nullptr;

struct Configuration {
  Dim3 grid, block;
  size_t shared_bytes;
  void* stream;
};
constexpr int kMaxConfigurations = 16;
thread_local Configuration configurations[kMaxConfigurations];
thread_local int configuration_count = 0;

// The driver's function on the current device.
cudaError_t find_function(const void* stub, void** function) {
  pthread_mutex_lock(&registry_mutex);
  Kernel* kernel = kernels;
  while (kernel != nullptr && kernel->stub != stub) kernel = kernel->next;
  cudaError_t error = kernel == nullptr ? kCudaErrorInvalidDeviceFunction : kCudaSuccess;
  if (kernel != nullptr) {
    void** module = &kernel->binary->modules[gpusim::cudart::current_device()];
    if (*module == nullptr) error = call("cuModuleLoadData", module, kernel->binary->image->data);
    if (error == kCudaSuccess) error = call("cuModuleGetFunction", function, *module, kernel->name);
  }
  pthread_mutex_unlock(&registry_mutex);
  return error;
}

cudaError_t launch(const void* stub, Dim3 grid, Dim3 block, void** parameters, size_t shared_bytes,
                   void* stream) {
  cudaError_t error = enter();
  void* function = nullptr;
  if (error == kCudaSuccess) error = find_function(stub, &function);
  if (error != kCudaSuccess) return error;
  return call("cuLaunchKernel", function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
              static_cast<unsigned int>(shared_bytes), stream, parameters,
              static_cast<void**>(nullptr));
}

template <typename... Parameters>
cudaError_t plain(const char* name, Parameters... parameters) {
  const cudaError_t error = enter();
  return remember(error != kCudaSuccess ? error : call(name, parameters...));
}

}  // namespace

GPUSIM_CUDART void** __cudaRegisterFatBinary(const void* image) {
  Binary* binary = new Binary;
  memset(static_cast<void*>(binary), 0, sizeof *binary);
  binary->image = static_cast<const FatBinary*>(image);
  return reinterpret_cast<void**>(binary);
}

GPUSIM_CUDART void __cudaRegisterFatBinaryEnd(void**) {}

GPUSIM_CUDART void __cudaUnregisterFatBinary(void**) {}

GPUSIM_CUDART char __cudaInitModule(void**) {
  return 1;
}

GPUSIM_CUDART void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name,
                                          int, void*, void*, void*, void*, int*) {
  Kernel* kernel = new Kernel{stub, name, reinterpret_cast<Binary*>(handle), nullptr};
  pthread_mutex_lock(&registry_mutex);
  kernel->next = kernels;
  kernels = kernel;
  pthread_mutex_unlock(&registry_mutex);
}

// Kernels compute nothing, so their variables need no place.
GPUSIM_CUDART void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

GPUSIM_CUDART unsigned int __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared_bytes,
                                                       void* stream) {
  if (configuration_count == kMaxConfigurations) return 1;
  configurations[configuration_count++] = {grid, block, shared_bytes, stream};
  return 0;
}

GPUSIM_CUDART cudaError_t __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared_bytes,
                                                     void** stream) {
  if (configuration_count == 0) return 52;  // cudaErrorMissingConfiguration
  const Configuration& last = configurations[--configuration_count];
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *stream = last.stream;
  return kCudaSuccess;
}

GPUSIM_CUDART cudaError_t cudaLaunchKernel(const void* stub, Dim3 grid, Dim3 block,
                                           void** parameters, size_t shared_bytes, void* stream) {
  return remember(launch(stub, grid, block, parameters, shared_bytes, stream));
}

GPUSIM_CUDART cudaError_t cudaStreamCreate(void** stream) {
  return plain("cuStreamCreate", stream, 0u);
}

GPUSIM_CUDART cudaError_t cudaStreamCreateWithFlags(void** stream, unsigned int flags) {
  return plain("cuStreamCreate", stream, flags);
}

GPUSIM_CUDART cudaError_t cudaStreamDestroy(void* stream) {
  return plain("cuStreamDestroy_v2", stream);
}

GPUSIM_CUDART cudaError_t cudaStreamSynchronize(void* stream) {
  return plain("cuStreamSynchronize", stream);
}

GPUSIM_CUDART cudaError_t cudaStreamQuery(void* stream) {
  return plain("cuStreamQuery", stream);
}

GPUSIM_CUDART cudaError_t cudaEventCreate(void** event) {
  return plain("cuEventCreate", event, 0u);
}

GPUSIM_CUDART cudaError_t cudaEventCreateWithFlags(void** event, unsigned int flags) {
  return plain("cuEventCreate", event, flags);
}

GPUSIM_CUDART cudaError_t cudaEventDestroy(void* event) {
  return plain("cuEventDestroy_v2", event);
}

GPUSIM_CUDART cudaError_t cudaEventRecord(void* event, void* stream) {
  return plain("cuEventRecord", event, stream);
}

GPUSIM_CUDART cudaError_t cudaEventSynchronize(void* event) {
  return plain("cuEventSynchronize", event);
}

GPUSIM_CUDART cudaError_t cudaEventQuery(void* event) {
  return plain("cuEventQuery", event);
}

GPUSIM_CUDART cudaError_t cudaEventElapsedTime(float* milliseconds, void* start, void* end) {
  return plain("cuEventElapsedTime", milliseconds, start, end);
}
