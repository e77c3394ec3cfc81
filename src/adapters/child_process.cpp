#include "adapters/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/unique_fd.h"

namespace cotenant::adapters {

using base::UniqueFd;
namespace {

using base::ErrorCode;
using SteadyClock = std::chrono::steady_clock;

// How long a killed child may take to go away before it is left to a later call.
constexpr std::chrono::milliseconds kReapTimeout{1000};

// Killed children that were still there when their call ended. Children belong to the process,
// hence one list for it.
class Unreaped {
 public:
  void add(pid_t pid) {
    const std::lock_guard lock(mutex_);
    pids_.push_back(pid);
  }

  void reap() {
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};

Unreaped g_unreaped;

struct Pipe {
  base::UniqueFd read_end;
  base::UniqueFd write_end;
};

base::Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::fail(ErrorCode::kIo, fmt::format("pipe: {}", std::strerror(errno)));
  }
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

// posix_spawn's two option objects, so that no path forgets to destroy them.
class SpawnOptions {
 public:
  SpawnOptions() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnOptions() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnOptions(const SpawnOptions&) = delete;
  SpawnOptions& operator=(const SpawnOptions&) = delete;

  void redirect(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }

  void isolate(bool new_session) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, "/");
    // Last: it closes the originals of the redirected descriptors, too.
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    const int group = new_session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    const int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group;
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Reads what is there without waiting. False at the end of the stream.
bool drain(int fd, std::string& text) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) return false;
    if (count < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN;
    }
    const std::size_t room = kChildOutputBytes - std::min(kChildOutputBytes, text.size());
    text.append(buffer.data(), std::min(static_cast<std::size_t>(count), room));
  }
}

int remaining_ms(SteadyClock::time_point deadline) {
  const auto left = deadline - SteadyClock::now();
  const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60 * 60 * 1000));
}

// Collects the output until the child has exited. False when the deadline came first. The exit, not
// the end of the output, is what counts: a grandchild may hold the pipe open.
bool collect(int process, int output, int error, SteadyClock::time_point deadline,
             ChildOutcome& outcome) {
  std::array<pollfd, 3> polled{{{process, POLLIN, 0}, {output, POLLIN, 0}, {error, POLLIN, 0}}};
  while (true) {
    const int ready = ::poll(polled.data(), polled.size(), remaining_ms(deadline));
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0) return false;
    const bool exited = ready > 0 && polled[0].revents != 0;
    // A closed stream is no longer polled (poll ignores negative descriptors).
    if (output >= 0 && polled[1].fd >= 0 && !drain(output, outcome.output)) polled[1].fd = -1;
    if (error >= 0 && polled[2].fd >= 0 && !drain(error, outcome.error)) polled[2].fd = -1;
    if (exited) return true;
  }
}

void set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void reap(pid_t pid, ChildOutcome& outcome) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return;
  }
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
}

void kill_and_reap(pid_t pid, int process, ChildOutcome& outcome) {
  // The group is the child's own (it leads it), so nobody else can be hit while it is not reaped.
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  pollfd polled{process, POLLIN, 0};
  const auto deadline = SteadyClock::now() + kReapTimeout;
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, remaining_ms(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready > 0) {
    reap(pid, outcome);
  } else {
    g_unreaped.add(pid);
  }
}

}  // namespace

base::Result<ChildOutcome> run_child(const ChildSpec& spec) {
  g_unreaped.reap();
  if (spec.input.size() > kChildInputBytes) {
    return base::fail(ErrorCode::kIo,
                      fmt::format("{}: the input has {} bytes; at most {} are allowed",
                                  spec.program, spec.input.size(), kChildInputBytes));
  }

  auto input = make_pipe();
  auto output = make_pipe();
  auto error = make_pipe();
  for (const auto* pipe : {&input, &output, &error}) {
    if (!*pipe) return base::fail(pipe->error());
  }
  if (!spec.input.empty() &&
      ::write(input->write_end.get(), spec.input.data(), spec.input.size()) !=
          static_cast<ssize_t>(spec.input.size())) {
    return base::fail(ErrorCode::kIo, fmt::format("pipe: {}", std::strerror(errno)));
  }
  input->write_end.reset();
  if (!spec.output_file.empty()) {
    base::UniqueFd file(
        ::open(spec.output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file) {
      return base::fail(ErrorCode::kIo,
                        fmt::format("{}: {}", spec.output_file, std::strerror(errno)));
    }
    output = Pipe{base::UniqueFd(), std::move(file)};
    error = Pipe{};
  }

  SpawnOptions options;
  options.redirect(input->read_end.get(), STDIN_FILENO);
  options.redirect(output->write_end.get(), STDOUT_FILENO);
  options.redirect(error->write_end ? error->write_end.get() : STDOUT_FILENO, STDERR_FILENO);
  options.isolate(spec.new_session);

  std::vector<std::string> arguments{spec.program};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  std::vector<std::string> environment = spec.environment;
  const auto deadline = SteadyClock::now() + spec.timeout;
  pid_t pid = 0;
  const int spawned =
      ::posix_spawnp(&pid, spec.program.c_str(), options.actions(), options.attributes(),
                     pointers(arguments).data(), pointers(environment).data());
  if (spawned != 0) {
    return base::fail(ErrorCode::kIo,
                      fmt::format("cannot run {}: {}", spec.program, std::strerror(spawned)));
  }
  input->read_end.reset();
  output->write_end.reset();
  error->write_end.reset();

  ChildOutcome outcome;
  // The child is not reaped yet, so the pid is still its own.
  const base::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) {
    const int reason = errno;
    ::kill(pid, SIGKILL);
    reap(pid, outcome);
    return base::fail(ErrorCode::kIo, fmt::format("pidfd_open: {} (Linux 5.3 or newer is needed)",
                                                  std::strerror(reason)));
  }
  if (output->read_end) set_nonblocking(output->read_end.get());
  if (error->read_end) set_nonblocking(error->read_end.get());
  if (collect(process.get(), output->read_end.get(), error->read_end.get(), deadline, outcome)) {
    reap(pid, outcome);
  } else {
    kill_and_reap(pid, process.get(), outcome);
    outcome.timed_out = true;
  }
  return outcome;
}

}  // namespace cotenant::adapters
