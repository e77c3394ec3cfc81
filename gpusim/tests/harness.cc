#include "tests/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "common/driver_client.h"

namespace gpusim::test {
namespace {

constexpr int kDeadlineS = 20;

using Clock = std::chrono::steady_clock;

// Reads what is there within the time; false at the end of the stream or of the time.
bool read_some(int fd, std::string* to, Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd entry = {fd, POLLIN, 0};
  if (left <= 0 || poll(&entry, 1, static_cast<int>(left)) <= 0) return false;
  char part[4096];
  const ssize_t size = read(fd, part, sizeof part);
  if (size <= 0) return false;
  to->append(part, static_cast<size_t>(size));
  return true;
}

std::string read_all(int fd) {
  std::string all;
  const auto deadline = Clock::now() + std::chrono::seconds(kDeadlineS);
  while (read_some(fd, &all, deadline)) {
  }
  return all;
}

}  // namespace

std::string binary(const std::string& name) {
  return std::string(GPUSIM_BIN_DIR) + "/" + name;
}

bool eventually(const std::function<bool()>& condition, int deadline_s) {
  const auto deadline = Clock::now() + std::chrono::seconds(deadline_s);
  while (!condition()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0 ? status.st_mode : 0;
}

TempDir::TempDir() {
  char path[] = "/tmp/gpusim-test-XXXXXX";
  if (mkdtemp(path) == nullptr) throw std::runtime_error("mkdtemp");
  chmod(path, 0755);
  path_ = path;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Process::Process(std::vector<std::string> arguments, const Environment& environment) {
  int in[2];
  int out[2];
  int err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2");
  }
  // Only what the test names: the machine's own CUDA_* variables shall not matter.
  std::vector<std::string> texts = {"PATH=/usr/bin:/bin", "LANG=C"};
  for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& text : texts) envp.push_back(text.data());
  envp.push_back(nullptr);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    // Nothing else goes along: what outlives its test must not hold a lock or pipe of whoever runs it.
    for (int fd = 3; fd < 1024; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  input_ = in[1];
  output_ = out[0];
  errors_ = err[0];
}

Process::~Process() {
  close_input();
  if (!ended_ && pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait();
  }
  close(output_);
  close(errors_);
}

std::string Process::line() {
  const auto deadline = Clock::now() + std::chrono::seconds(kDeadlineS);
  size_t end;
  while ((end = pending_.find('\n')) == std::string::npos) {
    if (!read_some(output_, &pending_, deadline)) return "";
  }
  const std::string text = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return text;
}

void Process::write(const std::string& text) {
  if (::write(input_, text.data(), text.size()) < 0) close_input();
}

void Process::close_input() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

void Process::kill(int signal) {
  ::kill(pid_, signal);
}

int Process::wait(int deadline_s) {
  if (!ended_) {
    ended_ = eventually([this] { return waitpid(pid_, &status_, WNOHANG) == pid_; }, deadline_s);
  }
  if (!ended_) return -1;
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

std::string Process::output() {
  return pending_ + read_all(output_);
}
std::string Process::error_output() {
  return read_all(errors_);
}

Outcome run(std::vector<std::string> arguments, const Environment& environment,
            const std::string& input) {
  Process process(std::move(arguments), environment);
  process.write(input);
  process.close_input();
  const int exit_code = process.wait();
  return {exit_code, process.output(), process.error_output()};
}

Gpusimd::Gpusimd(const std::string& gpus, std::vector<std::string> more) : dir_(folder_ / "g") {
  arguments_ = {binary("gpusimd"), "--dir", dir_, "--gpus", gpus};
  arguments_.insert(arguments_.end(), more.begin(), more.end());
  start();
}

void Gpusimd::start() {
  process_ = std::make_unique<Process>(arguments_, Environment{});
  if (!eventually([this] {
        return read_file(dir_ + "/gpusimd.pid") == std::to_string(process_->pid()) + "\n";
      })) {
    throw std::runtime_error("gpusimd is not ready: " + process_->error_output());
  }
}

void Gpusimd::restart() {
  process_.reset();
  start();
}

std::string Gpusimd::uuid(int minor) const {
  const std::string text = read_file(dir_ + "/devices/nvidia" + std::to_string(minor));
  const size_t at = text.find("uuid: ");
  return at == std::string::npos ? "" : text.substr(at + 6, 40);
}

Environment Gpusimd::environment() const {
  // The pipe directory names nothing, so that a daemon on the machine's default path has no say.
  return {{"GPUSIM_DIR", dir_},
          {"LD_LIBRARY_PATH", GPUSIM_BIN_DIR},
          {"CUDA_MPS_PIPE_DIRECTORY", dir_ + "/no-such-pipe"}};
}

Mps::Mps(const Gpusimd& driver, Environment more, std::vector<std::string> flags)
    : base_(driver.environment()) {
  base_["CUDA_MPS_PIPE_DIRECTORY"] = pipe();
  environment_ = base_;
  environment_["CUDA_MPS_LOG_DIRECTORY"] = folder_ / "log";
  for (const auto& [name, value] : more) environment_[name] = value;
  std::vector<std::string> arguments = {binary("nvidia-cuda-mps-control"), "-f"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  daemon_ = std::make_unique<Process>(arguments, environment_);
  if (!eventually([this] { return exists(pipe() + "/nvidia-cuda-mps-control.pid"); })) {
    throw std::runtime_error("no control daemon: " + daemon_->error_output());
  }
}

Mps::~Mps() {
  // A server that a test has stopped would outlive its daemon for ever.
  const std::string daemon = std::to_string(daemon_->pid());
  std::istringstream servers(read_file("/proc/" + daemon + "/task/" + daemon + "/children"));
  std::vector<pid_t> pids{std::istream_iterator<pid_t>(servers), {}};
  daemon_.reset();
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
}

Environment Mps::client(const std::string& limit) const {
  Environment environment = base_;
  if (!limit.empty()) environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = limit;
  return environment;
}

Outcome Mps::console(const std::string& commands) const {
  return run({binary("nvidia-cuda-mps-control")}, environment_, commands);
}

std::string Mps::start_server() {
  console("start_server -uid 0");
  std::string pid;
  eventually([&] {
    pid = ask("get_server_list");
    if (pid.empty()) return false;
    pid.erase(pid.find('\n'));
    return ask("get_server_status " + pid) == "ACTIVE\n";
  });
  return pid;
}

std::unique_ptr<Process> probe(const Environment& environment, std::vector<std::string> steps) {
  steps.insert(steps.begin(), GPUSIM_PROBE);
  return std::make_unique<Process>(steps, environment);
}

std::string probe_lines(const Environment& environment, std::vector<std::string> steps) {
  steps.insert(steps.begin(), GPUSIM_PROBE);
  const Outcome outcome = run(steps, environment);
  return outcome.output + outcome.errors;
}

bool took_ms(const std::string& line, long milliseconds) {
  if (line.rfind("spin 0 ", 0) != 0) return false;
  const long shown = std::stol(line.substr(7));
  return shown >= milliseconds && shown < milliseconds * 5 / 4;
}

Outcome gpusim(const Gpusimd& driver, std::vector<std::string> words) {
  words.insert(words.begin(), {binary("gpusim"), "--dir", driver.dir()});
  return run(words, driver.environment());
}

long used_mib(const Gpusimd& driver, unsigned device) {
  DriverClient client;
  DeviceState state = {};
  if (client.connect_to(driver.dir().c_str(), Role::kObserver) != Status::kOk ||
      client.get_state(device, &state) != Status::kOk) {
    return -1;
  }
  return static_cast<long>(state.used_bytes / kMiB);
}

}  // namespace gpusim::test
