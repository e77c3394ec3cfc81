// What 8 GPUs with 60 MPS clients each cost while nobody does anything: the processor time of gpusimd,
// of 8 control daemons and of 8 servers, against the wall time, in one run.
//   gpusim_idle DIR-WITH-THE-LIBRARIES [SECONDS]
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr int kGpus = 8;
constexpr int kClients = 60;
using Clock = std::chrono::steady_clock;

std::string folder;
std::string dir;

pid_t start(const std::vector<std::string>& command) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// What the console prints.
std::string ask(const std::string& command) {
  const std::string line = "echo '" + command + "' | '" + folder + "/nvidia-cuda-mps-control'";
  FILE* pipe = popen(line.c_str(), "r");
  std::string out;
  char part[256];
  while (pipe != nullptr && fgets(part, sizeof part, pipe) != nullptr) out += part;
  if (pipe != nullptr) pclose(pipe);
  return out;
}

bool until(const auto& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    poll(nullptr, 0, 20);
  }
  return false;
}

template <typename Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// A client that holds its memory until it is killed. Tells through the pipe how it went.
[[noreturn]] void be_client(int ready) {
  void* library = dlopen((folder + "/libcuda.so.1").c_str(), RTLD_NOW);
  void* context = nullptr;
  unsigned long long pointer = 0;
  const bool well =
      library != nullptr && find<int(unsigned)>(library, "cuInit")(0) == 0 &&
      find<int(void**, unsigned, int)>(library, "cuCtxCreate_v2")(&context, 0, 0) == 0 &&
      find<int(unsigned long long*, size_t)>(library, "cuMemAlloc_v2")(&pointer, 1 << 30) == 0;
  if (!well || write(ready, "x", 1) != 1) _exit(1);
  close(ready);
  while (true) pause();
}

// User and system time so far.
double processor_seconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::vector<std::string> fields;
  std::string field;
  for (const char c : stat.substr(name_end + 2)) {
    if (c != ' ') {
      field += c;
      continue;
    }
    fields.push_back(field);
    field.clear();
  }
  const double ticks = std::stod(fields[11]) + std::stod(fields[12]);  // utime, stime
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

long clients_that_came(int fd) {
  char bytes[1024];
  long count = 0;
  for (ssize_t size; (size = read(fd, bytes, sizeof bytes)) > 0;) count += size;
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: gpusim_idle DIR [SECONDS]\n");
    return 2;
  }
  folder = std::filesystem::absolute(argv[1]).string();
  const int seconds = argc > 2 ? atoi(argv[2]) : 20;
  char temporary[] = "/tmp/gpusim-idle-XXXXXX";
  if (mkdtemp(temporary) == nullptr) return 1;
  dir = temporary;
  const rlimit files = {16384, 16384};  // NVIDIA's documentation wants as much
  setrlimit(RLIMIT_NOFILE, &files);
  setenv("GPUSIM_DIR", (dir + "/gpusim").c_str(), 1);
  std::vector<pid_t> children = {start(
      {folder + "/gpusimd", "--dir", dir + "/gpusim", "--gpus", "8xH100", "--driver", "590"})};
  std::vector<pid_t> watched = children;
  bool well = until([] { return access((dir + "/gpusim/gpusimd.pid").c_str(), F_OK) == 0; });
  int ready[2];
  if (pipe(ready) != 0) return 1;
  for (int gpu = 0; gpu < kGpus && well; ++gpu) {
    const std::string home = dir + "/" + std::to_string(gpu);
    mkdir(home.c_str(), 0755);
    setenv("CUDA_MPS_PIPE_DIRECTORY", (home + "/pipe").c_str(), 1);
    setenv("CUDA_MPS_LOG_DIRECTORY", (home + "/log").c_str(), 1);
    std::ifstream device(dir + "/gpusim/devices/nvidia" + std::to_string(gpu));
    std::string uuid;
    for (std::string word; device >> word;) {
      if (word == "uuid:") device >> uuid;
    }
    setenv("CUDA_VISIBLE_DEVICES", uuid.c_str(), 1);
    children.push_back(start({folder + "/nvidia-cuda-mps-control", "-f", "-M"}));
    watched.push_back(children.back());
    well = until(
        [&] { return access((home + "/pipe/nvidia-cuda-mps-control.pid").c_str(), F_OK) == 0; });
    ask("start_server -uid 0");
    watched.push_back(atoi(ask("get_server_list").c_str()));
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (int i = 0; i < kClients; ++i) {
      const pid_t client = fork();
      if (client == 0) {
        close(ready[0]);
        be_client(ready[1]);
      }
      children.push_back(client);
    }
  }
  close(ready[1]);
  const long came = well ? clients_that_came(ready[0]) : 0;
  well = well && came == kGpus * kClients;

  const auto spent = [&] {
    double sum = 0;
    for (const pid_t pid : watched) sum += processor_seconds(pid);
    return sum;
  };
  const double before = spent();
  const auto start_time = Clock::now();
  if (well) poll(nullptr, 0, seconds * 1000);
  const double wall = std::chrono::duration<double>(Clock::now() - start_time).count();
  const double used = spent() - before;

  for (auto child = children.rbegin(); child != children.rend(); ++child) {
    if (*child > 0) kill(*child, child + 1 == children.rend() ? SIGTERM : SIGKILL);
  }
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
  if (!well) {
    fprintf(stderr, "%ld of %d clients came\n", came, kGpus * kClients);
    return 1;
  }
  printf("%d clients on %d GPUs at rest:    %6.2f s of a processor in %.1f s\n", kGpus * kClients,
         kGpus, used, wall);
  printf("ratio:                            %6.4f of one processor (aim: at most 0.01)\n",
         used / wall);
  return 0;
}
