#include "adapters/process_exec.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "adapters/process_shim.h"
#include "base/unique_fd.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using base::UniqueFd;

// From the end of the output to the end of the program.
constexpr std::chrono::seconds kExecEndLimit{5};
constexpr std::chrono::milliseconds kExecEndPoll{10};

base::Error exec_error(std::string_view doing) {
  return {ErrorCode::kIo, fmt::format("process runtime: {}: {}", doing, std::strerror(errno))};
}

struct ExecPipes {
  UniqueFd ours;
  UniqueFd theirs;
};

Result<ExecPipes> exec_pipe(bool we_write) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(exec_error("pipe"));
  UniqueFd reads(ends[0]);
  UniqueFd writes(ends[1]);
  if (we_write) return ExecPipes{std::move(writes), std::move(reads)};
  return ExecPipes{std::move(reads), std::move(writes)};
}

Result<ExecPipes> exec_terminal() {
  UniqueFd ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 128> name{};
  if (!ours || ::grantpt(ours.get()) != 0 || ::unlockpt(ours.get()) != 0 ||
      ::ptsname_r(ours.get(), name.data(), name.size()) != 0) {
    return fail(exec_error("terminal"));
  }
  UniqueFd theirs(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!theirs) return fail(exec_error("terminal"));
  return ExecPipes{std::move(ours), std::move(theirs)};
}

class ProcessExec final : public ports::ExecSession {
 public:
  // output: of a terminal both ways, then without error.
  ProcessExec(pid_t pid, UniqueFd shim, UniqueFd input, UniqueFd output, UniqueFd error,
              UniqueFd closed, bool tty)
      : pid_(pid),
        shim_(std::move(shim)),
        input_(std::move(input)),
        output_(std::move(output)),
        error_(std::move(error)),
        closed_(std::move(closed)),
        tty_(tty) {
    // So that a program which reads nothing holds a writer up in poll() only, where close() ends it.
    // (A terminal's output is the same open file: reads know that it may not block.)
    if (input_) ::fcntl(input_.get(), F_SETFL, ::fcntl(input_.get(), F_GETFL) | O_NONBLOCK);
  }
  ~ProcessExec() override {
    if (!reaped_) {
      // Nobody will ask how it ended. Its group is its own: it is our child and not waited for.
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  Status read(const ports::OnOutput& on_output) override {
    std::array<pollfd, 4> polled{{{output_.get(), POLLIN, 0},
                                  {error_.get(), POLLIN, 0},
                                  {shim_.get(), POLLIN, 0},
                                  {closed_.get(), POLLIN, 0}}};
    std::array<char, 32 * 1024> buffer;
    while (polled[0].fd >= 0 || polled[1].fd >= 0) {
      if (::poll(polled.data(), polled.size(), -1) < 0) {
        if (errno == EINTR) continue;
        return fail(exec_error("poll"));
      }
      if (polled[3].revents != 0) return fail(ErrorCode::kUnavailable, "the session was closed");
      if (polled[2].revents != 0) {
        // As with an engine: what was run in a container ends with it.
        ::kill(-pid_, SIGKILL);
        polled[2].fd = -1;
      }
      for (std::size_t i = 0; i < 2; ++i) {
        if (polled[i].fd < 0 || polled[i].revents == 0) continue;
        const ssize_t count = ::read(polled[i].fd, buffer.data(), buffer.size());
        if (count > 0) {
          on_output(i == 0 ? ports::OutputStream::kStdout : ports::OutputStream::kStderr,
                    {buffer.data(), static_cast<std::size_t>(count)});
        } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
          polled[i].fd = -1;  // a terminal whose other end is closed gives EIO
        }
      }
    }
    return {};
  }

  Status write(std::string_view input) override {
    const std::lock_guard lock(input_mutex_);
    while (!input.empty()) {
      if (!input_) return fail(ErrorCode::kUnavailable, "the program's input is closed");
      std::array<pollfd, 2> polled{{{input_.get(), POLLOUT, 0}, {closed_.get(), POLLIN, 0}}};
      if (::poll(polled.data(), polled.size(), -1) < 0) {
        if (errno == EINTR) continue;
        return fail(exec_error("poll"));
      }
      if (polled[1].revents != 0) return fail(ErrorCode::kUnavailable, "the session was closed");
      const ssize_t count = ::write(input_.get(), input.data(), input.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0) return fail(exec_error("write"));
      input.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  }

  Status end_input() override {
    if (tty_) return write("\x04");  // what a terminal's end of file is
    const std::lock_guard lock(input_mutex_);
    input_.reset();
    return {};
  }

  Status resize(int columns, int rows) override {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    if (!tty_) return fail(ErrorCode::kClient, "the program has no terminal");
    if (::ioctl(output_.get(), TIOCSWINSZ, &size) != 0) return fail(exec_error("resize"));
    return {};
  }

  Result<int> exit_code() override {
    const auto deadline = std::chrono::steady_clock::now() + kExecEndLimit;
    int status = 0;
    while (!reaped_) {
      const pid_t pid = ::waitpid(pid_, &status, WNOHANG);
      if (pid == pid_) {
        reaped_ = true;
        break;
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        return fail(ErrorCode::kClient, "the program has closed its output and goes on");
      }
      std::this_thread::sleep_for(kExecEndPoll);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  void close() override {
    const std::uint64_t one = 1;
    if (::write(closed_.get(), &one, sizeof one) < 0) return;  // it is counted already
  }

 private:
  const pid_t pid_;
  const UniqueFd shim_;
  std::mutex input_mutex_;
  UniqueFd input_;
  const UniqueFd output_;
  const UniqueFd error_;
  const UniqueFd closed_;  // an eventfd that can be read once the session was closed
  const bool tty_;
  bool reaped_ = false;
};

}  // namespace

Result<std::unique_ptr<ports::ExecSession>> exec_beside_process(const ProcessConfig& config,
                                                                const std::string& folder,
                                                                const ports::ExecRequest& request) {
  Result<UniqueFd> shim = open_running_shim(folder);
  if (!shim) return fail(shim.error());
  if (!*shim) return fail(ErrorCode::kConflict, "the container does not run");
  UniqueFd closed(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!closed) return fail(exec_error("eventfd"));
  UniqueFd input;
  Result<ExecPipes> output = request.tty ? exec_terminal() : exec_pipe(false);
  if (!output) return fail(output.error());
  ExecPipes error;
  UniqueFd their_input;
  if (request.tty) {
    input.reset(::fcntl(output->ours.get(), F_DUPFD_CLOEXEC, 0));
    their_input.reset(::fcntl(output->theirs.get(), F_DUPFD_CLOEXEC, 0));
    error.theirs.reset(::fcntl(output->theirs.get(), F_DUPFD_CLOEXEC, 0));
  } else {
    Result<ExecPipes> errors = exec_pipe(false);
    Result<ExecPipes> inputs = exec_pipe(true);
    if (!errors) return fail(errors.error());
    if (!inputs) return fail(inputs.error());
    error = std::move(*errors);
    their_input = std::move(inputs->theirs);
    if (request.with_input) input = std::move(inputs->ours);
  }
  const Result<pid_t> pid =
      start_exec(config, folder, request.command, request.tty,
                 {their_input.get(), output->theirs.get(), error.theirs.get()});
  if (!pid) return fail(pid.error());
  return std::unique_ptr<ports::ExecSession>(
      new ProcessExec(*pid, std::move(*shim), std::move(input), std::move(output->ours),
                      std::move(error.ours), std::move(closed), request.tty));
}

}  // namespace cotenant::adapters
