// A client of libcuda for the tests. Each argument is a step; each step prints one line.
//   init | count | ctx[:DEVICE] | newctx | alloc:MIB | fill | free | info | sync | roundtrip
//   launch:KERNEL | spin:MICROSECONDS | version | name:DEVICE | sms | env:NAME=VALUE
//   proc:SYMBOL:VERSION | fork (a child that sleeps) | childinit | hold (until a line or EOF on
//   stdin)
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace {

constexpr size_t kMiB = 1024 * 1024;
using DevicePointer = unsigned long long;

void* library = nullptr;

template <typename... Parameters>
int call_as(const char* name, std::type_identity_t<Parameters>... arguments) {
  void* address = dlsym(library, name);
  if (address == nullptr) return -1;
  return reinterpret_cast<int (*)(Parameters...)>(address)(arguments...);
}

int allocate(DevicePointer* pointer, size_t bytes) {
  return call_as<DevicePointer*, size_t>("cuMemAlloc_v2", pointer, bytes);
}

// Contents survive: written, filled whole and in part, copied between devices' blocks.
bool contents_hold() {
  constexpr size_t kBytes = 3 * kMiB;
  DevicePointer a = 0;
  DevicePointer b = 0;
  if (allocate(&a, kBytes) != 0 || allocate(&b, kBytes) != 0) return false;
  std::vector<unsigned char> host(kBytes, 1);
  const auto fill = [](DevicePointer at, unsigned char value, size_t bytes) {
    return call_as<DevicePointer, unsigned char, size_t>("cuMemsetD8_v2", at, value, bytes) == 0;
  };
  const auto read = [&host](DevicePointer at) {
    return call_as<void*, DevicePointer, size_t>("cuMemcpyDtoH_v2", host.data(), at, kBytes) == 0;
  };
  const auto all = [&host](size_t from, size_t to, unsigned char value) {
    for (size_t i = from; i < to; ++i) {
      if (host[i] != value) return false;
    }
    return true;
  };
  if (!read(a) || !all(0, kBytes, 0)) return false;
  if (!fill(a, 7, kBytes) || !read(a) || !all(0, kBytes, 7)) return false;
  if (!fill(a + kMiB, 9, kMiB) || !read(a)) return false;
  if (!all(0, kMiB, 7) || !all(kMiB, 2 * kMiB, 9) || !all(2 * kMiB, kBytes, 7)) return false;
  if (call_as<DevicePointer, DevicePointer, size_t>("cuMemcpyDtoD_v2", b, a, kBytes) != 0) {
    return false;
  }
  if (!fill(a, 0, kBytes) || !read(b) || !all(kMiB, 2 * kMiB, 9)) return false;
  host.assign(kBytes, 5);
  if (call_as<DevicePointer, const void*, size_t>("cuMemcpyHtoD_v2", a, host.data(), kBytes) != 0) {
    return false;
  }
  host.assign(kBytes, 0);
  if (!read(a) || !all(0, kBytes, 5)) return false;
  // Past the end of the block, and an address that is none.
  return call_as<DevicePointer, unsigned char, size_t>("cuMemsetD8_v2", a + 1, 1, kBytes) == 1 &&
         call_as<DevicePointer>("cuMemFree_v2", a + 512) == 1 &&
         call_as<DevicePointer>("cuMemFree_v2", DevicePointer{0}) == 0;
}

std::vector<DevicePointer> blocks;

void run_step(const std::string& name, const std::string& argument) {
  int result = 0;
  std::string more;
  if (name == "init") {
    result = call_as<unsigned int>("cuInit", 0u);
  } else if (name == "count") {
    int count = -1;
    result = call_as<int*>("cuDeviceGetCount", &count);
    more = std::to_string(count);
  } else if (name == "ctx") {
    void* context = nullptr;
    const int device = argument.empty() ? 0 : atoi(argument.c_str());
    result = call_as<void**, int>("cuDevicePrimaryCtxRetain", &context, device);
    if (result == 0) result = call_as<void*>("cuCtxSetCurrent", context);
  } else if (name == "newctx") {
    void* context = nullptr;
    result = call_as<void**, unsigned int, int>("cuCtxCreate_v2", &context, 0u, 0);
  } else if (name == "alloc") {
    DevicePointer pointer = 0;
    result = allocate(&pointer, strtoull(argument.c_str(), nullptr, 10) * kMiB);
    if (result == 0) blocks.push_back(pointer);
  } else if (name == "fill") {
    DevicePointer pointer = 0;
    size_t count = 0;
    while ((result = allocate(&pointer, kMiB)) == 0) {
      blocks.push_back(pointer);
      ++count;
    }
    more = std::to_string(count);
  } else if (name == "free") {
    result = call_as<DevicePointer>("cuMemFree_v2", blocks.back());
    blocks.pop_back();
  } else if (name == "info") {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    result = call_as<size_t*, size_t*>("cuMemGetInfo_v2", &free_bytes, &total_bytes);
    more = std::to_string(free_bytes / kMiB) + " " + std::to_string(total_bytes / kMiB);
  } else if (name == "launch" || name == "spin") {
    // launch:NAME of a kernel; spin:US, a kernel of that length, waited for: prints its milliseconds.
    void* module = nullptr;
    void* function = nullptr;
    void* start = nullptr;
    void* end = nullptr;
    uint64_t us = strtoull(argument.c_str(), nullptr, 10);
    void* parameters[] = {&us};
    const std::string kernel = name == "spin" ? "spin_us" : argument;
    result = call_as<void**, const void*>("cuModuleLoadData", &module, "image");
    if (result == 0) {
      result = call_as<void**, void*, const char*>("cuModuleGetFunction", &function, module,
                                                   kernel.c_str());
    }
    call_as<void**, unsigned int>("cuEventCreate", &start, 0u);
    call_as<void**, unsigned int>("cuEventCreate", &end, 0u);
    call_as<void*, void*>("cuEventRecord", start, nullptr);
    if (result == 0) {
      result = call_as<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       void*, void**, void**>("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0,
                                              nullptr, parameters, nullptr);
    }
    if (name == "spin") {
      float milliseconds = 0;
      call_as<void*, void*>("cuEventRecord", end, nullptr);
      call_as<void*>("cuEventSynchronize", end);
      call_as<float*, void*, void*>("cuEventElapsedTime", &milliseconds, start, end);
      more = std::to_string(static_cast<long>(milliseconds));
    }
  } else if (name == "sms") {
    int count = 0;
    result = call_as<int*, int, int>("cuDeviceGetAttribute", &count, 16, 0);
    more = std::to_string(count);
  } else if (name == "env") {
    const size_t equals = argument.find('=');
    result = setenv(argument.substr(0, equals).c_str(), argument.substr(equals + 1).c_str(), 1);
  } else if (name == "version") {
    int version = 0;
    result = call_as<int*>("cuDriverGetVersion", &version);
    more = std::to_string(version);
  } else if (name == "name") {
    char text[100] = "";
    result = call_as<char*, int, int>("cuDeviceGetName", text, 100, atoi(argument.c_str()));
    more = text;
  } else if (name == "sync") {
    result = call_as("cuCtxSynchronize");
  } else if (name == "roundtrip") {
    result = contents_hold() ? 0 : 1;
  } else if (name == "proc") {
    const size_t colon = argument.find(':');
    void* address = &library;
    int status = -1;
    result = call_as<const char*, void**, int, uint64_t, int*>(
        "cuGetProcAddress_v2", argument.substr(0, colon).c_str(), &address,
        atoi(argument.substr(colon + 1).c_str()), uint64_t{0}, &status);
    more = std::to_string(status) + (address != nullptr ? " found" : " null");
  } else if (name == "raw") {
    result = call_as(argument.c_str());
  } else if (name == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      close(0);
      close(1);
      while (true) pause();
    }
    more = std::to_string(child);
  } else if (name == "childinit") {
    const pid_t child = fork();
    if (child == 0) _exit(call_as<unsigned int>("cuInit", 0u));
    int status = 0;
    waitpid(child, &status, 0);
    result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  printf("%s %d%s%s\n", name.c_str(), result, more.empty() ? "" : " ", more.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string step = argv[i];
    const size_t colon = step.find(':');
    if (step == "hold") {
      puts("hold");
      char line[16];
      if (fgets(line, sizeof line, stdin) == nullptr) break;
      continue;
    }
    run_step(step.substr(0, colon), colon == std::string::npos ? "" : step.substr(colon + 1));
  }
  return 0;
}
