// What a client's cuMemAlloc costs against a bare round trip on a unix socket, in one run.
//
// Both are measured in turn, a block of each, so that the load of the machine falls on both alike.
// Prints the two medians and their ratio; the aim is at most 3.
//   gpusim_alloc DIR-WITH-THE-LIBRARIES [ROUNDS]
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using DevicePointer = unsigned long long;

constexpr int kBlock = 200;
constexpr size_t kMessageBytes = 64;

double micros_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The other end of the bare socket: a process of its own, as gpusimd is.
pid_t start_echo(int* fd) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    char message[kMessageBytes];
    while (recv(ends[1], message, sizeof message, 0) > 0 &&
           send(ends[1], message, sizeof message, MSG_NOSIGNAL) > 0) {
    }
    _exit(0);
  }
  close(ends[1]);
  *fd = ends[0];
  return child;
}

pid_t start_gpusimd(const std::string& folder, const std::string& dir) {
  const pid_t child = fork();
  if (child == 0) {
    const std::string program = folder + "/gpusimd";
    execl(program.c_str(), program.c_str(), "--dir", dir.c_str(), "--gpus", "1xH200", nullptr);
    _exit(127);
  }
  for (int i = 0; i < 2000 && access((dir + "/gpusimd.pid").c_str(), F_OK) != 0; ++i) {
    poll(nullptr, 0, 5);
  }
  return child;
}

template <typename Function>
Function* find(void* library, const char* name) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) {
    fprintf(stderr, "no %s\n", name);
    exit(1);
  }
  return function;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: gpusim_alloc DIR [ROUNDS]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const int rounds = argc > 2 ? std::max(1, atoi(argv[2])) : 50;
  char dir[] = "/tmp/gpusim-bench-XXXXXX";
  if (mkdtemp(dir) == nullptr) return 1;
  setenv("GPUSIM_DIR", dir, 1);
  setenv("CUDA_MPS_PIPE_DIRECTORY", (std::string(dir) + "/none").c_str(), 1);
  int echo_fd = -1;
  const pid_t echo = start_echo(&echo_fd);
  const pid_t driver = start_gpusimd(folder, dir);

  void* library = dlopen((folder + "/libcuda.so.1").c_str(), RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  void* context = nullptr;
  const bool ready =
      find<int(unsigned)>(library, "cuInit")(0) == 0 &&
      find<int(void**, unsigned, int)>(library, "cuCtxCreate_v2")(&context, 0, 0) == 0;
  auto* allocate = find<int(DevicePointer*, size_t)>(library, "cuMemAlloc_v2");
  auto* release = find<int(DevicePointer)>(library, "cuMemFree_v2");

  std::vector<double> bare;
  std::vector<double> allocations;
  bool well = ready;
  for (int round = 0; round < rounds && well; ++round) {
    char message[kMessageBytes] = {};
    for (int i = 0; i < kBlock; ++i) {
      const auto start = Clock::now();
      well = well && send(echo_fd, message, sizeof message, 0) > 0 &&
             recv(echo_fd, message, sizeof message, 0) > 0;
      bare.push_back(micros_since(start));
    }
    std::vector<DevicePointer> blocks(kBlock);
    for (DevicePointer& block : blocks) {
      const auto start = Clock::now();
      well = well && allocate(&block, 1 << 20) == 0;
      allocations.push_back(micros_since(start));
    }
    for (const DevicePointer block : blocks) release(block);
  }
  close(echo_fd);
  kill(driver, SIGTERM);
  waitpid(driver, nullptr, 0);
  waitpid(echo, nullptr, 0);
  if (!well) {
    fprintf(stderr, "a call failed\n");
    return 1;
  }
  printf("bare round trip on a unix socket: %6.2f us (median of %zu)\n", median(bare), bare.size());
  printf("cuMemAlloc of gpusim:             %6.2f us (median of %zu)\n", median(allocations),
         allocations.size());
  printf("ratio:                            %6.2f (aim: at most 3)\n",
         median(allocations) / median(bare));
  return 0;
}
