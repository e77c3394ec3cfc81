// gpu-worker: holds GPU memory and says so, once a second. What an inference service looks like to
// the GPU: a fixed amount (the model), and perhaps more later (the cache).
//
// Runs on a real GPU and on gpusim alike: only CUDA driver API calls, found at run time.
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kChunkMib = 256;
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

constexpr char kUsage[] =
    "usage: gpu-worker [options]\n"
    "\n"
    "Holds GPU memory on device 0 and prints once a second what it holds. SIGTERM ends it with 0.\n"
    "Each option can be given by the environment variable beside it; the option wins.\n"
    "\n"
    "  --memory-mib N     GPU_WORKER_MEMORY_MIB    what to hold from the start (default 512);\n"
    "                                              if it does not fit, the exit code is 1\n"
    "  --grow-mib N       GPU_WORKER_GROW_MIB      ask for N MiB more, MiB by MiB, go on with "
    "what\n"
    "                                              there is when refused (default 0)\n"
    "  --grow-after-s S   GPU_WORKER_GROW_AFTER_S  when (default 0: at once)\n"
    "  --seconds S        GPU_WORKER_SECONDS       end after S seconds (default 0: never)\n"
    "  --exit-code N      GPU_WORKER_EXIT_CODE     exit code of that end (default 0)\n";

// The CUDA driver API's binary interface, as far as it is used here.
using CUdeviceptr = unsigned long long;
struct CUuuid {
  unsigned char bytes[16];
};

struct Cuda {
  int (*cuInit)(unsigned int);
  int (*cuDeviceGetCount)(int*);
  int (*cuDeviceGet)(int*, int);
  int (*cuDeviceGetName)(char*, int, int);
  int (*cuDeviceGetUuid)(CUuuid*, int);
  int (*cuDevicePrimaryCtxRetain)(void**, int);
  int (*cuCtxSetCurrent)(void*);
  int (*cuCtxSynchronize)();
  int (*cuMemAlloc_v2)(CUdeviceptr*, size_t);
  int (*cuMemsetD8_v2)(CUdeviceptr, unsigned char, size_t);
  int (*cuMemGetInfo_v2)(size_t*, size_t*);
  int (*cuGetErrorName)(int, const char**);
};

struct Options {
  uint64_t memory_mib = 512;
  uint64_t grow_mib = 0;
  uint64_t grow_after_s = 0;
  uint64_t seconds = 0;
  uint64_t exit_code = 0;
};

struct Option {
  const char* name;
  const char* variable;
  uint64_t Options::*member;
  uint64_t max;
};
constexpr uint64_t kMaxMib = uint64_t{1} << 32;
constexpr uint64_t kMaxSeconds = uint64_t{1} << 32;
constexpr Option kOptions[] = {
    {"--memory-mib", "GPU_WORKER_MEMORY_MIB", &Options::memory_mib, kMaxMib},
    {"--grow-mib", "GPU_WORKER_GROW_MIB", &Options::grow_mib, kMaxMib},
    {"--grow-after-s", "GPU_WORKER_GROW_AFTER_S", &Options::grow_after_s, kMaxSeconds},
    {"--seconds", "GPU_WORKER_SECONDS", &Options::seconds, kMaxSeconds},
    {"--exit-code", "GPU_WORKER_EXIT_CODE", &Options::exit_code, 255},
};

bool parse_value(const Option& option, const char* source, const char* text, Options* options) {
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value > option.max) {
    fprintf(stderr, "gpu-worker: %s '%s' is not a whole number from 0 to %llu\n", source, text,
            static_cast<unsigned long long>(option.max));
    return false;
  }
  options->*option.member = value;
  return true;
}

bool parse_options(int argc, char** argv, Options* options) {
  for (const Option& option : kOptions) {
    const char* text = getenv(option.variable);
    if (text != nullptr && *text != '\0' && !parse_value(option, option.variable, text, options)) {
      return false;
    }
  }
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    const size_t equals = name.find('=');
    const char* text = nullptr;
    if (equals != std::string::npos) {
      text = argv[i] + equals + 1;
      name.resize(equals);
    }
    const Option* found = nullptr;
    for (const Option& option : kOptions) {
      if (name == option.name) found = &option;
    }
    if (found == nullptr) {
      fprintf(stderr, "gpu-worker: unknown option '%s'\n%s", argv[i], kUsage);
      return false;
    }
    if (text == nullptr && i + 1 < argc) text = argv[++i];
    if (text == nullptr) {
      fprintf(stderr, "gpu-worker: %s needs a value\n", found->name);
      return false;
    }
    if (!parse_value(*found, found->name, text, options)) return false;
  }
  return true;
}

const char* error_name(const Cuda& cuda, int result) {
  const char* name = nullptr;
  if (cuda.cuGetErrorName == nullptr || cuda.cuGetErrorName(result, &name) != 0 ||
      name == nullptr) {
    return "unknown error";
  }
  return name;
}

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  void* address = dlsym(library, name);
  if (address == nullptr) {
    fprintf(stderr, "gpu-worker: libcuda.so.1 has no %s\n", name);
    return false;
  }
  *function = reinterpret_cast<Function>(address);
  return true;
}

bool load_cuda(Cuda* cuda) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr,
            "gpu-worker: no CUDA driver library: %s\n"
            "gpu-worker: was this container given a GPU?\n",
            dlerror());
    return false;
  }
  return find(library, "cuInit", &cuda->cuInit) &&
         find(library, "cuDeviceGetCount", &cuda->cuDeviceGetCount) &&
         find(library, "cuDeviceGet", &cuda->cuDeviceGet) &&
         find(library, "cuDeviceGetName", &cuda->cuDeviceGetName) &&
         find(library, "cuDeviceGetUuid", &cuda->cuDeviceGetUuid) &&
         find(library, "cuDevicePrimaryCtxRetain", &cuda->cuDevicePrimaryCtxRetain) &&
         find(library, "cuCtxSetCurrent", &cuda->cuCtxSetCurrent) &&
         find(library, "cuCtxSynchronize", &cuda->cuCtxSynchronize) &&
         find(library, "cuMemAlloc_v2", &cuda->cuMemAlloc_v2) &&
         find(library, "cuMemsetD8_v2", &cuda->cuMemsetD8_v2) &&
         find(library, "cuMemGetInfo_v2", &cuda->cuMemGetInfo_v2) &&
         find(library, "cuGetErrorName", &cuda->cuGetErrorName);
}

class Worker {
 public:
  Worker(const Cuda& cuda, const Options& options) : cuda_(cuda), options_(options) {}

  int run() {
    if (!open_device()) return kExitFailure;
    if (!hold(options_.memory_mib, kChunkMib)) {
      printf("gpu-worker: %s cannot hold %llu MiB, refused after %llu MiB (error %d %s)\n",
             uuid_.c_str(), number(options_.memory_mib), number(held_mib_), last_error_,
             error_name(cuda_, last_error_));
      return kExitFailure;
    }
    bool grown = options_.grow_mib == 0;
    for (uint64_t second = 0;; ++second) {
      if (!grown && second >= options_.grow_after_s) {
        grow();
        grown = true;
      }
      if (!work() || !report()) return kExitFailure;
      if (options_.seconds != 0 && second + 1 > options_.seconds) break;
      sleep(1);
    }
    printf("gpu-worker: %s done after %llu s, exit code %llu\n", uuid_.c_str(),
           number(options_.seconds), number(options_.exit_code));
    return static_cast<int>(options_.exit_code);
  }

 private:
  struct Block {
    CUdeviceptr address;
    uint64_t bytes;
  };

  static unsigned long long number(uint64_t value) { return value; }

  bool succeeded(const char* what, int result) {
    if (result == 0) return true;
    fprintf(stderr, "gpu-worker: %s failed: error %d %s\n", what, result,
            error_name(cuda_, result));
    return false;
  }

  bool open_device() {
    int device = 0;
    int count = 0;
    char name[128] = {};
    CUuuid uuid = {};
    void* context = nullptr;
    if (!succeeded("cuInit", cuda_.cuInit(0)) ||
        !succeeded("cuDeviceGetCount", cuda_.cuDeviceGetCount(&count)) ||
        !succeeded("cuDeviceGet", cuda_.cuDeviceGet(&device, 0)) ||
        !succeeded("cuDeviceGetName", cuda_.cuDeviceGetName(name, sizeof name - 1, device)) ||
        !succeeded("cuDeviceGetUuid", cuda_.cuDeviceGetUuid(&uuid, device)) ||
        !succeeded("cuDevicePrimaryCtxRetain", cuda_.cuDevicePrimaryCtxRetain(&context, device)) ||
        !succeeded("cuCtxSetCurrent", cuda_.cuCtxSetCurrent(context))) {
      return false;
    }
    uuid_ = "GPU-";
    for (int i = 0; i < 16; ++i) {
      char text[4];
      snprintf(text, sizeof text, "%02x", uuid.bytes[i]);
      if (i == 4 || i == 6 || i == 8 || i == 10) uuid_ += '-';
      uuid_ += text;
    }
    printf("gpu-worker: uses %s (%s), device 0 of %d\n", uuid_.c_str(), name, count);
    return true;
  }

  // False at the first refusal, with last_error_; what was got is kept.
  bool hold(uint64_t mib, uint64_t chunk_mib) {
    while (mib > 0) {
      const uint64_t part_mib = mib < chunk_mib ? mib : chunk_mib;
      CUdeviceptr address = 0;
      last_error_ = cuda_.cuMemAlloc_v2(&address, part_mib * kMiB);
      if (last_error_ != 0) return false;
      blocks_.push_back({address, part_mib * kMiB});
      held_mib_ += part_mib;
      mib -= part_mib;
    }
    return true;
  }

  // Large chunks as long as they fit, then ever smaller ones: the refusal is exact to the MiB.
  void grow() {
    const uint64_t asked_mib = held_mib_ + options_.grow_mib;
    uint64_t chunk_mib = kChunkMib;
    while (held_mib_ < asked_mib) {
      if (hold(asked_mib - held_mib_, chunk_mib)) break;
      if (last_error_ != kOutOfMemory || chunk_mib == 1) break;
      chunk_mib /= 2;
    }
    if (held_mib_ == asked_mib) {
      printf("gpu-worker: %s grew to %llu MiB\n", uuid_.c_str(), number(held_mib_));
    } else {
      printf("gpu-worker: %s refused at MiB %llu of %llu (error %d %s), goes on with %llu MiB\n",
             uuid_.c_str(), number(held_mib_ + 1), number(asked_mib), last_error_,
             error_name(cuda_, last_error_), number(held_mib_));
    }
  }

  bool work() {
    for (const Block& block : blocks_) {
      if (!succeeded("cuMemsetD8", cuda_.cuMemsetD8_v2(block.address, pattern_, block.bytes))) {
        return false;
      }
    }
    ++pattern_;
    return succeeded("cuCtxSynchronize", cuda_.cuCtxSynchronize());
  }

  bool report() {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (!succeeded("cuMemGetInfo", cuda_.cuMemGetInfo_v2(&free_bytes, &total_bytes))) return false;
    printf("gpu-worker: %s holds %llu MiB in %zu blocks, free %llu MiB of %llu MiB\n",
           uuid_.c_str(), number(held_mib_), blocks_.size(), number(free_bytes / kMiB),
           number(total_bytes / kMiB));
    return true;
  }

  const Cuda& cuda_;
  const Options& options_;
  std::string uuid_;
  std::vector<Block> blocks_;
  uint64_t held_mib_ = 0;
  int last_error_ = 0;
  unsigned char pattern_ = 1;
};

// Ends at once: a container's process 1 has no default action for SIGTERM, so it must have a
// handler.
extern "C" void end_now(int) {
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  struct sigaction action = {};
  action.sa_handler = end_now;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--help") == 0) {
      fputs(kUsage, stdout);
      return 0;
    }
  }
  Options options;
  if (!parse_options(argc, argv, &options)) return kExitUsage;
  Cuda cuda = {};
  if (!load_cuda(&cuda)) return kExitFailure;
  return Worker(cuda, options).run();
}
