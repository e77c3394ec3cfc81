// CUDA driver API: modules, kernels, streams and events.
//
// A kernel is a delay: it computes nothing. GPUSIM_KERNEL_US sets its length on a whole idle GPU
// (default 20); the driver stretches it by the MPS thread percentage and by others at work. What else
// a kernel does is asked for by its name, so that a program can hold the real thing under that name:
//   *illegal_address*   accesses an address that is none: CUDA error 700 at the next call that looks
//   *launch_failed*     ends by a trap: 719
//   *spin_us*           takes as many microseconds as its first parameter (64 bits) says
// GPUSIM_KERNEL_FAULT=illegal-address|launch-failed makes every kernel of a process do that.
#include <cstdlib>
#include <cstring>
#include <set>

#include "common/text.h"
#include "cuda/driver_state.h"

struct CUfunc_st {
  gpusim::KernelFault fault;
  bool spins;
  char name[256];
  CUfunc_st* next;
};

struct CUmod_st {
  CUfunc_st* functions;  // every name resolves
};

struct CUevent_st {
  uint64_t recorded_at_us;  // modelled time; 0: never recorded
};

using gpusim::cuda::now_us;
using gpusim::cuda::sleep_until_us;

namespace {

std::set<CUmodule>& modules() {
  static auto* all = new std::set<CUmodule>;
  return *all;
}

std::set<CUevent>& events() {
  static auto* all = new std::set<CUevent>;
  return *all;
}

uint64_t kernel_us() {
  constexpr uint64_t kDefaultKernelUs = 20;
  constexpr uint64_t kLongestKernelUs = 3600000000;
  const char* text = getenv("GPUSIM_KERNEL_US");
  uint64_t value = 0;
  if (text == nullptr || !gpusim::parse_number(text, &value) || value > kLongestKernelUs) {
    return kDefaultKernelUs;
  }
  return value;
}

gpusim::KernelFault kernel_fault(const char* name) {
  if (strstr(name, "illegal_address") != nullptr) return gpusim::KernelFault::kIllegalAddress;
  if (strstr(name, "launch_failed") != nullptr) return gpusim::KernelFault::kLaunchFailed;
  const char* text = getenv("GPUSIM_KERNEL_FAULT");
  if (text != nullptr && strcmp(text, "illegal-address") == 0) {
    return gpusim::KernelFault::kIllegalAddress;
  }
  if (text != nullptr && strcmp(text, "launch-failed") == 0) {
    return gpusim::KernelFault::kLaunchFailed;
  }
  return gpusim::KernelFault::kNone;
}

CUresult load(CUmodule* module, const void* image) {
  GPUSIM_CALL(kContext);
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (image == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  CUmodule made = new CUmod_st{nullptr};
  modules().insert(made);
  *module = made;
  return CUDA_SUCCESS;
}

CUresult unload(CUmodule module) {
  GPUSIM_CALL(kContext);
  if (modules().erase(module) == 0) return CUDA_ERROR_INVALID_HANDLE;
  while (module->functions != nullptr) {
    CUfunction function = module->functions;
    module->functions = function->next;
    delete function;
  }
  delete module;
  return CUDA_SUCCESS;
}

CUresult find_function(CUfunction* function, CUmodule module, const char* name) {
  GPUSIM_CALL(kContext);
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (modules().count(module) == 0) return CUDA_ERROR_INVALID_HANDLE;
  if (name[0] == '\0' || strlen(name) >= sizeof(CUfunc_st::name)) return CUDA_ERROR_NOT_FOUND;
  for (CUfunction known = module->functions; known != nullptr; known = known->next) {
    if (strcmp(known->name, name) != 0) continue;
    *function = known;
    return CUDA_SUCCESS;
  }
  CUfunction made = new CUfunc_st;
  made->fault = kernel_fault(name);
  made->spins = strstr(name, "spin_us") != nullptr;
  gpusim::copy_text(name, made->name, sizeof made->name);
  made->next = module->functions;
  module->functions = made;
  *function = made;
  return CUDA_SUCCESS;
}

bool is_stream(gpusim::cuda::Call& call, CUstream stream) {
  // NULL and the handles 1 (legacy) and 2 (per thread) are the default stream.
  return reinterpret_cast<uintptr_t>(stream) <= 2 || call.driver().streams().count(stream) != 0;
}

}  // namespace

GPUSIM_CUDA cuModuleLoadData(CUmodule* module, const void* image) {
  return load(module, image);
}
GPUSIM_CUDA cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, int*, void**) {
  return load(module, image);
}
GPUSIM_CUDA cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load(module, image);
}
GPUSIM_CUDA cuModuleUnload(CUmodule module) {
  return unload(module);
}
GPUSIM_CUDA cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return find_function(function, module, name);
}
GPUSIM_CUDA cuLibraryLoadData(CUlibrary* library, const void* image, int*, void**, unsigned int,
                              int*, void**, unsigned int) {
  return load(library, image);
}
GPUSIM_CUDA cuLibraryUnload(CUlibrary library) {
  return unload(library);
}
GPUSIM_CUDA cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return find_function(kernel, library, name);
}
GPUSIM_CUDA cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr || kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = kernel;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                           unsigned int block_z, unsigned int, CUstream stream, void** parameters,
                           void**) {
  GPUSIM_CALL(kContext);
  constexpr uint64_t kMaxThreadsPerBlock = 1024;
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || block_x == 0 || block_y == 0 || block_z == 0 ||
      uint64_t{block_x} * block_y * block_z > kMaxThreadsPerBlock) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (function == nullptr || !is_stream(call, stream)) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t work_us = kernel_us();
  if (function->spins && parameters != nullptr && parameters[0] != nullptr) {
    memcpy(&work_us, parameters[0], sizeof work_us);
  }
  return call.driver().launch(call.context(), stream, work_us, function->fault);
}

GPUSIM_CUDA cuStreamCreate(CUstream* stream, unsigned int) {
  GPUSIM_CALL(kContext);
  if (stream == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *stream = new CUstream_st{call.context(), 0};
  call.driver().streams()[*stream] = 0;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int) {
  return cuStreamCreate(stream, flags);
}

GPUSIM_CUDA cuStreamDestroy_v2(CUstream stream) {
  GPUSIM_CALL(kInit);
  if (call.driver().streams().erase(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  delete stream;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuStreamSynchronize(CUstream stream) {
  GPUSIM_CALL(kContext);
  if (!is_stream(call, stream)) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t ready_at_us = call.driver().ready_at_us(call.context(), stream);
  CUcontext context = call.context();
  call.unlock();
  sleep_until_us(ready_at_us);
  return gpusim::cuda::check_again(context);
}

GPUSIM_CUDA cuStreamQuery(CUstream stream) {
  GPUSIM_CALL(kContext);
  if (!is_stream(call, stream)) return CUDA_ERROR_INVALID_HANDLE;
  return call.driver().ready_at_us(call.context(), stream) <= now_us() ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_NOT_READY;
}

GPUSIM_CUDA cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
  GPUSIM_CALL(kContext);
  if (!is_stream(call, stream) || events().count(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t ready = call.driver().ready_at_us(call.context(), stream);
  if (call.driver().streams().count(stream) != 0 && event->recorded_at_us > ready) {
    stream->ready_at_us = event->recorded_at_us;
  }
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuEventCreate(CUevent* event, unsigned int) {
  GPUSIM_CALL(kContext);
  if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = new CUevent_st{0};
  events().insert(*event);
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuEventDestroy_v2(CUevent event) {
  GPUSIM_CALL(kInit);
  if (events().erase(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuEventRecord(CUevent event, CUstream stream) {
  GPUSIM_CALL(kContext);
  if (events().count(event) == 0 || !is_stream(call, stream)) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t now = now_us();
  const uint64_t ready = call.driver().ready_at_us(call.context(), stream);
  event->recorded_at_us = ready > now ? ready : now;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuEventQuery(CUevent event) {
  GPUSIM_CALL(kInit);
  if (events().count(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  return event->recorded_at_us <= now_us() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

GPUSIM_CUDA cuEventSynchronize(CUevent event) {
  GPUSIM_CALL(kInit);
  if (events().count(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t ready_at_us = event->recorded_at_us;
  call.unlock();
  sleep_until_us(ready_at_us);
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
GPUSIM_CUDA cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

GPUSIM_CUDA cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  GPUSIM_CALL(kInit);
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (events().count(start) == 0 || events().count(end) == 0 || start->recorded_at_us == 0 ||
      end->recorded_at_us == 0) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (end->recorded_at_us > now_us()) return CUDA_ERROR_NOT_READY;
  const auto difference =
      static_cast<int64_t>(end->recorded_at_us) - static_cast<int64_t>(start->recorded_at_us);
  *milliseconds = static_cast<float>(difference) / 1000.0F;
  return CUDA_SUCCESS;
}
