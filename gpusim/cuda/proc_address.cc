// CUDA driver API: cuGetProcAddress, by which programs since CUDA 11.3 find all other entry points.
#include <cstring>

#include "cuda/cuda_types.h"

// Only the addresses are taken here, so one declaration without parameters does for all.
#define GPUSIM_ENTRY(name, version, symbol) extern "C" CUresult symbol();
#define GPUSIM_UNIMPLEMENTED(name) extern "C" CUresult name();
#include "cuda/entry_points.inc"
#include "cuda/unimplemented.inc"
#undef GPUSIM_ENTRY
#undef GPUSIM_UNIMPLEMENTED

extern "C" CUresult cuGetProcAddress_v2(const char*, void**, int, uint64_t, int*);
extern "C" CUresult cuGetProcAddress(const char*, void**, int, uint64_t);

namespace {

struct EntryPoint {
  const char* name;
  int version;
  void* address;
};

template <typename Function>
void* address_of(Function function) {
  return reinterpret_cast<void*>(function);
}

const EntryPoint kEntryPoints[] = {
#define GPUSIM_ENTRY(name, version, symbol) {#name, version, address_of(symbol)},
#define GPUSIM_UNIMPLEMENTED(name) {#name, 2000, address_of(name)},
#include "cuda/entry_points.inc"
#include "cuda/unimplemented.inc"
    {"cuGetProcAddress", 11030, address_of(cuGetProcAddress)},
    {"cuGetProcAddress", 12000, address_of(cuGetProcAddress_v2)},
};

// CUdriverProcAddressQueryResult
constexpr int kFound = 0;
constexpr int kSymbolNotFound = 1;
constexpr int kVersionNotSufficient = 2;

// Does `name`, which may end in _v2 and the like, stand for `asked`, which never does?
bool is_named(const char* name, const char* asked) {
  const size_t length = strlen(asked);
  return strncmp(name, asked, length) == 0 &&
         (name[length] == '\0' ||
          (name[length] == '_' && name[length + 1] == 'v' && name[length + 3] == '\0'));
}

}  // namespace

GPUSIM_CUDA cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags,
                                int* status) {
  // Flags: 0 default, 1 legacy, 2 per-thread default stream. Here all streams behave alike.
  if (symbol == nullptr || function == nullptr || flags > 2) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  bool known = false;
  int best = -1;
  for (const EntryPoint& entry : kEntryPoints) {
    if (!is_named(entry.name, symbol)) continue;
    known = true;
    if (entry.version > version || entry.version <= best) continue;
    best = entry.version;
    *function = entry.address;
  }
  if (status != nullptr) {
    *status = *function != nullptr ? kFound : known ? kVersionNotSufficient : kSymbolNotFound;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

GPUSIM_CUDA cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}
