#include "cudart/runtime.h"

#include <dlfcn.h>
#include <pthread.h>

// By the version that they have had since glibc 2.2.5, lest the library need glibc 2.34.
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");

namespace gpusim::cudart {
namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
void* library = nullptr;
bool initialized = false;
constexpr int kMaxDevices = 64;
void* primary_contexts[kMaxDevices] = {};

thread_local int thread_device = 0;
thread_local cudaError_t last_error = kCudaSuccess;

}  // namespace

void* driver_entry(const char* name) {
  pthread_mutex_lock(&mutex);
  if (library == nullptr) library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  pthread_mutex_unlock(&mutex);
  return found;
}

cudaError_t enter_driver() {
  if (initialized) return kCudaSuccess;
  const cudaError_t error = call("cuInit", 0u);
  if (error == kCudaSuccess) initialized = true;
  return error;
}

cudaError_t enter() {
  if (const cudaError_t error = enter_driver(); error != kCudaSuccess) return error;
  const int device = thread_device;
  pthread_mutex_lock(&mutex);
  void* context = primary_contexts[device];
  pthread_mutex_unlock(&mutex);
  if (context == nullptr) {
    const cudaError_t error = call("cuDevicePrimaryCtxRetain", &context, device);
    if (error != kCudaSuccess) return error;
    pthread_mutex_lock(&mutex);
    primary_contexts[device] = context;
    pthread_mutex_unlock(&mutex);
  }
  return call("cuCtxSetCurrent", context);
}

int current_device() {
  return thread_device;
}

void set_current_device(int device) {
  thread_device = device < kMaxDevices ? device : 0;
}

cudaError_t remember(cudaError_t error) {
  if (error != kCudaSuccess) last_error = error;
  return error;
}

cudaError_t take_last_error(bool keep) {
  const cudaError_t error = last_error;
  if (!keep) last_error = kCudaSuccess;
  return error;
}

}  // namespace gpusim::cudart
