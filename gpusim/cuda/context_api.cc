// CUDA driver API: contexts.
#include "cuda/driver_state.h"

using gpusim::cuda::current_context;
using gpusim::cuda::pop_context;
using gpusim::cuda::push_context;
using gpusim::cuda::replace_current_context;
using gpusim::cuda::sleep_until_us;

namespace {

bool is_device(gpusim::cuda::Call& call, CUdevice device) {
  return device >= 0 && static_cast<uint32_t>(device) < call.driver().device_count();
}

}  // namespace

GPUSIM_CUDA cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  GPUSIM_CALL(kInit);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext present = call.driver().primary(static_cast<uint32_t>(device));
  if (present != nullptr) {
    ++present->references;
    *context = present;
    return CUDA_SUCCESS;
  }
  return call.driver().create_context(static_cast<uint32_t>(device), true, context);
}

GPUSIM_CUDA cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  GPUSIM_CALL(kInit);
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext context = call.driver().primary(static_cast<uint32_t>(device));
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return --context->references > 0 ? CUDA_SUCCESS : call.driver().destroy_context(context);
}

GPUSIM_CUDA cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

GPUSIM_CUDA cuDevicePrimaryCtxReset_v2(CUdevice device) {
  GPUSIM_CALL(kInit);
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext context = call.driver().primary(static_cast<uint32_t>(device));
  return context == nullptr ? CUDA_SUCCESS : call.driver().destroy_context(context);
}

GPUSIM_CUDA cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  GPUSIM_CALL(kInit);
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = call.driver().primary(static_cast<uint32_t>(device)) != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int) {
  GPUSIM_CALL(kInit);
  return is_device(call, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

GPUSIM_CUDA cuCtxCreate_v2(CUcontext* context, unsigned int, CUdevice device) {
  GPUSIM_CALL(kInit);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const CUresult result =
      call.driver().create_context(static_cast<uint32_t>(device), false, context);
  if (result == CUDA_SUCCESS) push_context(*context);
  return result;
}

GPUSIM_CUDA cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}

GPUSIM_CUDA cuCtxCreate_v3(CUcontext* context, void*, int, unsigned int flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}

GPUSIM_CUDA cuCtxCreate_v4(CUcontext* context, void*, unsigned int flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}

GPUSIM_CUDA cuCtxDestroy_v2(CUcontext context) {
  GPUSIM_CALL(kInit);
  if (!call.driver().owns(context) || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (current_context() == context) pop_context();
  return call.driver().destroy_context(context);
}

GPUSIM_CUDA cuCtxGetCurrent(CUcontext* context) {
  GPUSIM_CALL(kInit);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = current_context();
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuCtxSetCurrent(CUcontext context) {
  GPUSIM_CALL(kInit);
  if (context != nullptr && !call.driver().owns(context)) return CUDA_ERROR_INVALID_CONTEXT;
  replace_current_context(context);
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuCtxPushCurrent_v2(CUcontext context) {
  GPUSIM_CALL(kInit);
  if (!call.driver().owns(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return push_context(context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

GPUSIM_CUDA cuCtxPopCurrent_v2(CUcontext* context) {
  GPUSIM_CALL(kInit);
  if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext popped = pop_context();
  if (context != nullptr) *context = popped;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuCtxGetDevice(CUdevice* device) {
  GPUSIM_CALL(kContext);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = static_cast<CUdevice>(call.context()->device);
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuCtxGetFlags(unsigned int* flags) {
  GPUSIM_CALL(kContext);
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = 0;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuCtxGetApiVersion(CUcontext, unsigned int* version) {
  GPUSIM_CALL(kInit);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuCtxSynchronize() {
  GPUSIM_CALL(kContext);
  CUcontext context = call.context();
  const uint64_t ready_at_us = call.driver().ready_at_us(context);
  call.unlock();
  sleep_until_us(ready_at_us);
  return gpusim::cuda::check_again(context);
}
