// What the CUDA driver API answers: one row a fact. The kernels are PTX; gpusim knows them by name.
//   cuda_facts            the table of a whole process
//   cuda_facts allocate   prints how many MiB it gets of a limited device, in steps of 64 MiB
//   cuda_facts context    prints how cuInit and the first context end
//   cuda_facts contexts   prints how many contexts it gets, up to 100, and what the next one answers
//   cuda_facts fault      a kernel with an illegal address; prints what the next call answers
//   cuda_facts hold       has a context, prints "ready", and at the end of its input what
//                         cuCtxSynchronize answers
#include <cstring>
#include <string>
#include <vector>

#include "abi.h"

using gpu_facts::Library;
using gpu_facts::row;

namespace {

using Pointer = unsigned long long;
constexpr size_t kMiB = 1024 * 1024;

constexpr char kPtx[] =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    ".visible .entry spin_us(.param .u64 us) {\n"
    "  .reg .u64 %t<4>; .reg .pred %p;\n"
    "  ld.param.u64 %t0, [us]; mul.lo.u64 %t0, %t0, 1000; mov.u64 %t1, %globaltimer;\n"
    "again: mov.u64 %t2, %globaltimer; sub.u64 %t3, %t2, %t1; setp.lt.u64 %p, %t3, %t0;\n"
    "  @%p bra again; ret; }\n"
    ".visible .entry illegal_address() {\n"
    "  .reg .u64 %a; .reg .u32 %v; mov.u64 %a, 16; mov.u32 %v, 1; st.global.u32 [%a], %v; ret; }\n";

class Cuda {
 public:
  Cuda() : library_("libcuda.so.1") {}
  template <typename... Parameters>
  int call(const char* name, std::type_identity_t<Parameters>... arguments) const {
    return library_.call<Parameters...>(name, arguments...);
  }
  int allocate(Pointer* pointer, size_t bytes) const {
    return call<Pointer*, size_t>("cuMemAlloc_v2", pointer, bytes);
  }
  int release(Pointer pointer) const { return call<Pointer>("cuMemFree_v2", pointer); }
  int launch(void* function, void** parameters) const {
    return call<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**>("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, nullptr,
                                parameters, nullptr);
  }

 private:
  Library library_;
};

void lookup_facts(const Cuda& cuda) {
  const struct {
    const char* name;
    int version;
  } kCases[] = {{"cuMemAlloc", 12000}, {"cuMemAlloc", 3000}, {"cuNoSuchFunction", 12000}};
  for (const auto& test : kCases) {
    void* address = nullptr;
    int status = -1;
    const int code = cuda.call<const char*, void**, int, uint64_t, int*>(
        "cuGetProcAddress_v2", test.name, &address, test.version, 0, &status);
    const std::string name =
        std::string("cuGetProcAddress ") + test.name + " " + std::to_string(test.version);
    row(name.c_str(), std::to_string(code) + " status " + std::to_string(status) +
                          (address == nullptr ? " null" : " found"));
  }
}

void memory_facts(const Cuda& cuda) {
  size_t free_before = 0;
  size_t total = 0;
  row("cuMemGetInfo_v2", cuda.call<size_t*, size_t*>("cuMemGetInfo_v2", &free_before, &total));
  size_t device_total = 0;
  cuda.call<size_t*, int>("cuDeviceTotalMem_v2", &device_total, 0);
  row("  total = cuDeviceTotalMem_v2", total == device_total);
  Pointer pointer = 0;
  row("cuMemAlloc_v2 of 256 MiB", cuda.allocate(&pointer, 256 * kMiB));
  size_t free_after = 0;
  cuda.call<size_t*, size_t*>("cuMemGetInfo_v2", &free_after, &total);
  row("  free is 256 MiB less", free_before - free_after == 256 * kMiB);
  row("cuMemAlloc_v2 of 0", cuda.allocate(&pointer, 0));
  Pointer huge = 0;
  row("cuMemAlloc_v2 of more than there is", cuda.allocate(&huge, total + kMiB));
  row("cuMemFree_v2 of NULL", cuda.release(0));
  row("cuMemFree_v2 of an unknown address", cuda.release(0x1234500));
  Pointer block = 0;
  cuda.allocate(&block, 4096);
  std::vector<unsigned char> host(4096, 0);
  row("cuMemsetD8_v2", cuda.call<Pointer, unsigned char, size_t>("cuMemsetD8_v2", block, 7, 4096));
  row("cuMemcpyDtoH_v2",
      cuda.call<void*, Pointer, size_t>("cuMemcpyDtoH_v2", host.data(), block, 4096));
  row("  has what was set", host[0] == 7 && host[4095] == 7);
  row("cuMemFree_v2", cuda.release(block));
  row("cuMemFree_v2 again", cuda.release(block));
}

void kernel_facts(const Cuda& cuda) {
  void* module = nullptr;
  void* function = nullptr;
  row("cuModuleLoadData", cuda.call<void**, const void*>("cuModuleLoadData", &module, kPtx));
  row("cuModuleGetFunction",
      cuda.call<void**, void*, const char*>("cuModuleGetFunction", &function, module, "spin_us"));
  void* start = nullptr;
  void* end = nullptr;
  cuda.call<void**, unsigned>("cuEventCreate", &start, 0);
  cuda.call<void**, unsigned>("cuEventCreate", &end, 0);
  uint64_t us = 500000;
  void* parameters[] = {&us};
  cuda.call<void*, void*>("cuEventRecord", start, nullptr);
  row("cuLaunchKernel", cuda.launch(function, parameters));
  cuda.call<void*, void*>("cuEventRecord", end, nullptr);
  row("cuEventQuery while it runs", cuda.call<void*>("cuEventQuery", end));
  row("cuEventSynchronize", cuda.call<void*>("cuEventSynchronize", end));
  float milliseconds = 0;
  cuda.call<float*, void*, void*>("cuEventElapsedTime", &milliseconds, start, end);
  row("  a kernel of 500 ms took 499 to 1500", milliseconds >= 499 && milliseconds < 1500);
  cuda.call<void**, void*, const char*>("cuModuleGetFunction", &function, module,
                                        "illegal_address");
  row("cuLaunchKernel, illegal address", cuda.launch(function, nullptr));
  row("cuCtxSynchronize then", cuda.call<>("cuCtxSynchronize"));
  Pointer pointer = 0;
  row("cuMemAlloc_v2 then", cuda.allocate(&pointer, 4096));
  row("cuCtxSynchronize again", cuda.call<>("cuCtxSynchronize"));
}

int print_fault(const Cuda& cuda) {
  void* module = nullptr;
  void* function = nullptr;
  cuda.call<void**, const void*>("cuModuleLoadData", &module, kPtx);
  cuda.call<void**, void*, const char*>("cuModuleGetFunction", &function, module,
                                        "illegal_address");
  const int launched = cuda.launch(function, nullptr);
  printf("launch %d, then %d\n", launched, cuda.call<>("cuCtxSynchronize"));
  return 0;
}

int hold(const Cuda& cuda) {
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  printf("%d\n", cuda.call<>("cuCtxSynchronize"));
  return 0;
}

int print_contexts(const Cuda& cuda) {
  constexpr int kMost = 100;
  int count = 1;  // the primary one
  int code = 0;
  void* context = nullptr;
  while (count < kMost &&
         (code = cuda.call<void**, unsigned, int>("cuCtxCreate_v2", &context, 0, 0)) == 0) {
    ++count;
  }
  printf("%d, then error %d\n", count, code);
  return 0;
}

int print_allocatable(const Cuda& cuda) {
  constexpr size_t kStep = 64;
  Pointer pointer = 0;
  size_t mib = 0;
  int code = 0;
  while ((code = cuda.allocate(&pointer, kStep * kMiB)) == 0) mib += kStep;
  printf("%zu MiB, then error %d\n", mib, code);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Cuda cuda;
  const std::string verb = argc > 1 ? argv[1] : "";
  const bool has_verb = !verb.empty();
  int count = 0;
  if (!has_verb) {
    row("cuDeviceGetCount before cuInit", cuda.call<int*>("cuDeviceGetCount", &count));
    row("cuInit with flags", cuda.call<unsigned>("cuInit", 1));
  }
  const int initialized = cuda.call<unsigned>("cuInit", 0);
  void* context = nullptr;
  if (has_verb) {
    const int created = initialized != 0
                            ? initialized
                            : cuda.call<void**, int>("cuDevicePrimaryCtxRetain", &context, 0);
    if (verb == "context") {
      printf("cuInit %d, context %d\n", initialized, initialized != 0 ? initialized : created);
      return 0;
    }
    if (created != 0) {
      printf("error %d\n", created);
      return 0;
    }
    cuda.call<void*>("cuCtxSetCurrent", context);
    if (verb == "fault") return print_fault(cuda);
    if (verb == "hold") return hold(cuda);
    if (verb == "contexts") return print_contexts(cuda);
    return print_allocatable(cuda);
  }
  row("cuInit", initialized);
  row("cuDeviceGetCount", cuda.call<int*>("cuDeviceGetCount", &count));
  int device = -1;
  row("cuDeviceGet, ordinal too high", cuda.call<int*, int>("cuDeviceGet", &device, count));
  Pointer pointer = 0;
  row("cuMemAlloc_v2 without a context", cuda.allocate(&pointer, 4096));
  row("cuDevicePrimaryCtxRetain", cuda.call<void**, int>("cuDevicePrimaryCtxRetain", &context, 0));
  row("cuCtxSetCurrent", cuda.call<void*>("cuCtxSetCurrent", context));
  lookup_facts(cuda);
  memory_facts(cuda);
  kernel_facts(cuda);
  return 0;
}
