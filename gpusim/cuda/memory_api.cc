// CUDA driver API: memory.
#include <cstring>

#include "cuda/driver_state.h"

using gpusim::cuda::BlockKind;
using gpusim::cuda::Call;
using gpusim::cuda::MemoryStore;
using gpusim::cuda::sleep_until_us;

namespace {

CUresult allocate(size_t bytes, BlockKind kind, CUdeviceptr* out) {
  GPUSIM_CALL(kContext);
  return call.driver().allocate(call.context(), bytes, kind, out);
}

CUresult release(CUdeviceptr pointer) {
  GPUSIM_CALL(kContext);
  return pointer == 0 ? CUDA_SUCCESS : call.driver().release(pointer);
}

// Fills run asynchronously on a device, so they only queue modelled time.
CUresult fill(CUdeviceptr to, const void* pattern, size_t pattern_bytes, size_t count,
              CUstream stream) {
  GPUSIM_CALL(kContext);
  size_t bytes = 0;
  if (__builtin_mul_overflow(pattern_bytes, count, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return CUDA_SUCCESS;
  if (to % pattern_bytes != 0 || !call.driver().memory().contains(to, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = call.driver().check(call.context());
  if (result != CUDA_SUCCESS) return result;
  call.driver().memory().fill(to, pattern, pattern_bytes, count);
  call.driver().add_work(call.context(), stream, call.driver().bytes_to_us(call.context(), bytes));
  return CUDA_SUCCESS;
}

enum class Side { kHost, kDevice, kEither };

// One address that is device memory of ours, or the program's own.
struct Place {
  CUdeviceptr address;
  Side side;
};

bool resolve(MemoryStore& memory, Place* place, uint64_t bytes) {
  if (place->side == Side::kHost) return place->address != 0;
  if (memory.contains(place->address, bytes)) {
    place->side = Side::kDevice;
    return true;
  }
  CUdeviceptr base;
  uint64_t size;
  BlockKind kind;
  CUcontext owner;
  if (place->side == Side::kDevice || place->address == 0 ||
      memory.find(place->address, &base, &size, &kind, &owner)) {
    return false;  // not ours, or ours and too short
  }
  place->side = Side::kHost;
  return true;
}

void transfer(MemoryStore& memory, Place to, Place from, uint64_t bytes) {
  void* host_to = reinterpret_cast<void*>(to.address);
  const void* host_from = reinterpret_cast<const void*>(from.address);
  if (to.side == Side::kDevice && from.side == Side::kDevice) {
    memory.copy(from.address, to.address, bytes);
  } else if (to.side == Side::kDevice) {
    memory.write(to.address, host_from, bytes);
  } else if (from.side == Side::kDevice) {
    memory.read(from.address, host_to, bytes);
  } else {
    memmove(host_to, host_from, bytes);
  }
}

CUresult copy(Place to, Place from, size_t bytes, CUstream stream, bool wait) {
  GPUSIM_CALL(kContext);
  if (bytes == 0) return CUDA_SUCCESS;
  MemoryStore& memory = call.driver().memory();
  if (!resolve(memory, &to, bytes) || !resolve(memory, &from, bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult result = call.driver().check(call.context());
  if (result != CUDA_SUCCESS) return result;
  transfer(memory, to, from, bytes);
  call.driver().add_work(call.context(), stream, call.driver().bytes_to_us(call.context(), bytes));
  const uint64_t ready_at_us = call.driver().ready_at_us(call.context(), stream);
  call.unlock();
  if (wait) sleep_until_us(ready_at_us);
  return CUDA_SUCCESS;
}

Place host(const void* pointer) {
  return {reinterpret_cast<CUdeviceptr>(pointer), Side::kHost};
}
Place device(CUdeviceptr pointer) {
  return {pointer, Side::kDevice};
}
Place either(CUdeviceptr pointer) {
  return {pointer, Side::kEither};
}

Place row_place(int memory_type, const void* host_base, CUdeviceptr device_base, size_t offset) {
  switch (memory_type) {
    case 1:
      return host(static_cast<const char*>(host_base) + offset);
    case 2:
      return device(device_base + offset);
    case 4:
      return either(device_base + offset);
    default:
      return {0, Side::kHost};  // arrays are not simulated
  }
}

CUresult copy_2d(const CUDA_MEMCPY2D* plan, CUstream stream, bool wait) {
  if (plan == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t row = 0; row < plan->Height; ++row) {
    const Place from = row_place(plan->srcMemoryType, plan->srcHost, plan->srcDevice,
                                 (plan->srcY + row) * plan->srcPitch + plan->srcXInBytes);
    const Place to = row_place(plan->dstMemoryType, plan->dstHost, plan->dstDevice,
                               (plan->dstY + row) * plan->dstPitch + plan->dstXInBytes);
    const CUresult result =
        copy(to, from, plan->WidthInBytes, stream, wait && row + 1 == plan->Height);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// CUpointer_attribute. False: the attribute is not offered.
bool pointer_attribute(CUdeviceptr pointer, CUdeviceptr base, uint64_t bytes, BlockKind kind,
                       CUcontext context, int attribute, void* out) {
  switch (attribute) {
    case 1:  // CONTEXT
      memcpy(out, &context, sizeof context);
      return true;
    case 2: {  // MEMORY_TYPE
      const unsigned int type = kind == BlockKind::kHost ? 1 : 2;
      memcpy(out, &type, sizeof type);
      return true;
    }
    case 3:  // DEVICE_POINTER
    case 4:  // HOST_POINTER
      memcpy(out, &pointer, sizeof pointer);
      return true;
    case 8: {  // IS_MANAGED
      const unsigned int managed = kind == BlockKind::kManaged ? 1 : 0;
      memcpy(out, &managed, sizeof managed);
      return true;
    }
    case 9: {  // DEVICE_ORDINAL
      const int ordinal = static_cast<int>(context->device);
      memcpy(out, &ordinal, sizeof ordinal);
      return true;
    }
    case 11:  // RANGE_START_ADDR
      memcpy(out, &base, sizeof base);
      return true;
    case 12:  // RANGE_SIZE
      memcpy(out, &bytes, sizeof bytes);
      return true;
    default:
      return false;
  }
}

}  // namespace

GPUSIM_CUDA cuMemGetInfo_v2(size_t* free, size_t* total) {
  GPUSIM_CALL(kContext);
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
  const CUresult result =
      call.driver().memory_info(call.context()->device, &free_bytes, &total_bytes);
  if (result != CUDA_SUCCESS) return result;
  *free = free_bytes;
  *total = total_bytes;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuMemAlloc_v2(CUdeviceptr* pointer, size_t bytes) {
  return allocate(bytes, BlockKind::kDevice, pointer);
}

GPUSIM_CUDA cuMemAllocPitch_v2(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height,
                               unsigned int) {
  constexpr size_t kPitch = 512;
  size_t bytes = 0;
  if (pitch == nullptr || width > SIZE_MAX - kPitch) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  if (__builtin_mul_overflow(*pitch, height, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  return allocate(bytes, BlockKind::kDevice, pointer);
}

GPUSIM_CUDA cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned int) {
  return allocate(bytes, BlockKind::kManaged, pointer);
}

GPUSIM_CUDA cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream) {
  return allocate(bytes, BlockKind::kDevice, pointer);
}

GPUSIM_CUDA cuMemFree_v2(CUdeviceptr pointer) {
  return release(pointer);
}

GPUSIM_CUDA cuMemFreeAsync(CUdeviceptr pointer, CUstream) {
  return release(pointer);
}

GPUSIM_CUDA cuMemHostAlloc(void** pointer, size_t bytes, unsigned int) {
  if (pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr address = 0;
  const CUresult result = allocate(bytes, BlockKind::kHost, &address);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return result;
}

GPUSIM_CUDA cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

GPUSIM_CUDA cuMemFreeHost(void* pointer) {
  return release(reinterpret_cast<CUdeviceptr>(pointer));
}

GPUSIM_CUDA cuMemHostGetDevicePointer_v2(CUdeviceptr* device_pointer, void* pointer, unsigned int) {
  GPUSIM_CALL(kContext);
  if (device_pointer == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);
  if (!call.driver().memory().contains(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  *device_pointer = address;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  GPUSIM_CALL(kContext);
  CUdeviceptr found_base = 0;
  uint64_t found_bytes = 0;
  BlockKind kind;
  CUcontext context;
  if (!call.driver().memory().find(pointer, &found_base, &found_bytes, &kind, &context)) {
    return CUDA_ERROR_NOT_FOUND;
  }
  if (base != nullptr) *base = found_base;
  if (bytes != nullptr) *bytes = found_bytes;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return fill(to, &value, 1, count, nullptr);
}
GPUSIM_CUDA cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return fill(to, &value, 2, count, nullptr);
}
GPUSIM_CUDA cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return fill(to, &value, 4, count, nullptr);
}
GPUSIM_CUDA cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill(to, &value, 1, count, stream);
}
GPUSIM_CUDA cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill(to, &value, 2, count, stream);
}
GPUSIM_CUDA cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return fill(to, &value, 4, count, stream);
}

GPUSIM_CUDA cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(either(to), either(from), bytes, nullptr, true);
}
GPUSIM_CUDA cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(either(to), either(from), bytes, stream, false);
}
GPUSIM_CUDA cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(device(to), host(from), bytes, nullptr, true);
}
GPUSIM_CUDA cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy(host(to), device(from), bytes, nullptr, true);
}
GPUSIM_CUDA cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(device(to), device(from), bytes, nullptr, false);
}
GPUSIM_CUDA cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(device(to), host(from), bytes, stream, false);
}
GPUSIM_CUDA cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(host(to), device(from), bytes, stream, false);
}
GPUSIM_CUDA cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(device(to), device(from), bytes, stream, false);
}
GPUSIM_CUDA cuMemcpy2D_v2(const CUDA_MEMCPY2D* plan) {
  return copy_2d(plan, nullptr, true);
}
GPUSIM_CUDA cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* plan) {
  return copy_2d(plan, nullptr, true);
}
GPUSIM_CUDA cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* plan, CUstream stream) {
  return copy_2d(plan, stream, false);
}

GPUSIM_CUDA cuPointerGetAttribute(void* out, int attribute, CUdeviceptr pointer) {
  GPUSIM_CALL(kInit);
  CUdeviceptr base;
  uint64_t bytes;
  BlockKind kind;
  CUcontext context;
  if (out == nullptr || !call.driver().memory().find(pointer, &base, &bytes, &kind, &context)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return pointer_attribute(pointer, base, bytes, kind, context, attribute, out)
             ? CUDA_SUCCESS
             : CUDA_ERROR_NOT_SUPPORTED;
}

// Unlike the single form this one leaves what it does not know untouched and succeeds.
GPUSIM_CUDA cuPointerGetAttributes(unsigned int count, int* attributes, void** out,
                                   CUdeviceptr pointer) {
  GPUSIM_CALL(kInit);
  if (attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr base;
  uint64_t bytes;
  BlockKind kind;
  CUcontext context;
  if (!call.driver().memory().find(pointer, &base, &bytes, &kind, &context)) return CUDA_SUCCESS;
  for (unsigned int i = 0; i < count; ++i) {
    if (out[i] != nullptr) {
      pointer_attribute(pointer, base, bytes, kind, context, attributes[i], out[i]);
    }
  }
  return CUDA_SUCCESS;
}
