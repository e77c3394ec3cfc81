// A CUDA program as `nvcc -cudart shared` makes one: prototypes as the runtime's header has them, and
// the calls that nvcc adds (constructors that register, a stub for each kernel). Each argument is a
// step; each step prints one line: count | set:DEVICE | fill:MIB | info | copy | spin | fault | last
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using cudaError_t = int;
using cudaStream_t = void*;
using cudaEvent_t = void*;
struct dim3 {
  unsigned int x, y, z;
};

extern "C" {
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(void* properties, int device);
cudaError_t cudaMalloc(void** pointer, size_t bytes);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMallocHost(void** pointer, size_t bytes);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
cudaError_t cudaMemset(void* pointer, int value, size_t bytes);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** parameters,
                             size_t shared_bytes, cudaStream_t stream);
void** __cudaRegisterFatBinary(const void* image);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* device_function,
                            const char* name, int thread_limit, void*, void*, void*, void*, int*);
unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void** stream);
}

namespace {

// As nvcc generates it for `kernel<<<1, 32>>>(us)`.
void stub_of(const void* self, void** parameters) {
  dim3 grid = {}, block = {};
  size_t shared_bytes = 0;
  void* stream = nullptr;
  if (__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream) != 0) return;
  cudaLaunchKernel(self, grid, block, parameters, shared_bytes, stream);
}
void spin_us(uint64_t us) {
  void* parameters[] = {&us};
  stub_of(reinterpret_cast<const void*>(&spin_us), parameters);
}
void illegal_address() {
  stub_of(reinterpret_cast<const void*>(&illegal_address), nullptr);
}
template <typename Kernel, typename... Parameters>
cudaError_t launch(Kernel kernel, Parameters... parameters) {
  if (__cudaPushCallConfiguration({1, 1, 1}, {32, 1, 1}, 0, nullptr) == 0) kernel(parameters...);
  return cudaPeekAtLastError();
}

const char kImage[] = "an image";
const struct {
  int magic, version;
  const void* data;
  void* unused;
} kFatBinary = {0x466243b1, 1, kImage, nullptr};
void** handle = nullptr;

__attribute__((constructor(101))) void register_kernels() {
  handle = __cudaRegisterFatBinary(&kFatBinary);
  __cudaRegisterFunction(handle, reinterpret_cast<const char*>(&spin_us), nullptr, "_Z7spin_usm",
                         -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFunction(handle, reinterpret_cast<const char*>(&illegal_address), nullptr,
                         "_Z15illegal_addressv", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(handle);
}
__attribute__((destructor)) void unregister() {
  __cudaUnregisterFatBinary(handle);
}

constexpr size_t kMiB = 1024 * 1024;

int copy() {
  void* device = nullptr;
  void* host = nullptr;
  int result = cudaMalloc(&device, kMiB);
  if (result == 0) result = cudaMallocHost(&host, kMiB);
  if (result == 0) result = cudaMemset(device, 9, kMiB);
  if (result == 0) result = cudaMemcpy(host, device, kMiB, 2);
  const bool is_there = result == 0 && static_cast<char*>(host)[kMiB - 1] == 9;
  if (result == 0) result = cudaMemcpy(device, "hello", 5, 1);
  if (result == 0) result = cudaMemcpy(host, device, 6, 4);
  if (result == 0 && (!is_there || memcmp(host, "hello\t", 6) != 0)) result = -1;
  if (cudaFree(device) != 0 || cudaFreeHost(host) != 0) result = -2;
  return result;
}

int spin(float* milliseconds) {
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  cudaEventRecord(start, nullptr);
  int result = launch(spin_us, uint64_t{50000});
  cudaEventRecord(end, nullptr);
  if (result == 0) result = cudaEventSynchronize(end);
  cudaEventElapsedTime(milliseconds, start, end);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string step = argv[i];
    const size_t colon = step.find(':');
    const std::string name = step.substr(0, colon);
    const int number = colon == std::string::npos ? 0 : atoi(step.c_str() + colon + 1);
    int result = 0;
    std::string more;
    if (name == "count") {
      int count = -1;
      result = cudaGetDeviceCount(&count);
      more = std::to_string(count);
    } else if (name == "set") {
      result = cudaSetDevice(number);
      int device = -1;
      cudaGetDevice(&device);
      more = std::to_string(device);
    } else if (name == "name") {
      char properties[4096] = {};
      result = cudaGetDeviceProperties(properties, number);
      more = properties;
    } else if (name == "fill") {
      void* pointer = nullptr;
      int blocks = 0;
      while ((result = cudaMalloc(&pointer, static_cast<size_t>(number) * kMiB)) == 0) ++blocks;
      more = std::to_string(blocks);
    } else if (name == "info") {
      size_t free_bytes = 0;
      size_t total_bytes = 0;
      result = cudaMemGetInfo(&free_bytes, &total_bytes);
      more = std::to_string(free_bytes / kMiB) + " " + std::to_string(total_bytes / kMiB);
    } else if (name == "copy") {
      result = copy();
    } else if (name == "spin") {
      float milliseconds = 0;
      result = spin(&milliseconds);
      more = std::to_string(static_cast<long>(milliseconds));
    } else if (name == "fault") {
      result = launch(illegal_address);
      more = std::to_string(cudaDeviceSynchronize()) + " " + cudaGetErrorString(700);
    } else if (name == "last") {
      result = cudaGetLastError();
      more = std::to_string(cudaGetLastError());
    }
    printf("%s %d%s%s\n", name.c_str(), result, more.empty() ? "" : " ", more.c_str());
  }
  return 0;
}
