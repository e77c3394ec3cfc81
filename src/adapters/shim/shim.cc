// One of these stands behind each container of the `process` runtime: it starts the program, writes
// its output down, ends it when the agent asks, and leaves word of how it ended. It lives as long as
// the program and needs no agent, so that an agent may be killed or upgraded at any time.
//
// Static and without the C++ library: it is small (its pages are shared by all of one agent's) and
// no LD_* variable of a container concerns it. Embedded in cotenant, started by
// adapters/process_shim.cpp with these descriptors:
//   0, 1, 2  /dev/null
//   3        a pipe: "ok", or why the program does not run
//   4        the container's lock file, locked; that it is locked means that this runs
// With the word "exec" it is no supervisor but becomes the program, with the streams that it was given.
// Signals: SIGTERM: the program's group is to end; SIGUSR1: all of it is killed.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "descendants.h"
#include "log_file.h"
#include "options.h"
#include "program.h"
#include "records.h"

namespace shim {
namespace {

constexpr int kStatusPipe = 3;
constexpr int kLock = 4;
// A disk may be full for a while; a program whose end nobody learns of is worse than one that is seen
// to have ended a minute late.
constexpr int kRecordAttempts = 60;

void say(const char* text) {
  if (write(kStatusPipe, text, strlen(text)) < 0) return;  // the agent has gone
}

class Supervisor {
 public:
  explicit Supervisor(const Options& options) : options_(options) {}

  int run() {
    const int signals = take_signals();
    log_.open_in(options_.folder, options_.log_bytes, options_.log_files);
    start_program(options_, &program_);
    char text[1024];
    if (program_.error[0] != '\0') {
      snprintf(text, sizeof text, "finished_ms %lld\nerror %s\n",
               static_cast<long long>(wall_clock_ms()), program_.error);
      write_record(options_.folder, "exit", text);
      say(program_.error);
      return 1;
    }
    snprintf(text, sizeof text, "shim %d\npid %d\nboot %s\nstarted_ms %lld\n", getpid(),
             program_.pid, options_.boot_id, static_cast<long long>(wall_clock_ms()));
    if (!write_record(options_.folder, "state", text)) {
      say("its state cannot be written; is the disk full or read-only?");
      signal_children(SIGKILL, 0);
      return 1;
    }
    // What was left of the run before it. In this order: a state alone would look like a program whose
    // shim was killed.
    remove_record(options_.folder, "exit");
    touch(options_.folder);
    say("ok");
    close(kStatusPipe);
    supervise(signals);
    return 0;
  }

 private:
  int take_signals() {
    sigset_t set;
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, nullptr);
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&set, signal);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  void supervise(int signals) {
    pollfd polled[3] = {
        {signals, POLLIN, 0}, {program_.output[0], POLLIN, 0}, {program_.output[1], POLLIN, 0}};
    bool over = false;
    while (!over) {
      if (poll(polled, 3, -1) < 0 && errno != EINTR) break;
      for (int stream = 0; stream < kStreams; ++stream) {
        pollfd& source = polled[stream + 1];
        if (source.fd >= 0 && source.revents != 0 && !read_output(stream)) source.fd = -1;
      }
      signalfd_siginfo signal;
      while (read(signals, &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo == SIGTERM) end_group();
        if (signal.ssi_signo == SIGUSR1) kill_all();
        if (signal.ssi_signo == SIGCHLD && reap()) over = true;
      }
    }
    for (int stream = 0; stream < kStreams; ++stream) {
      if (polled[stream + 1].fd >= 0) read_all_output(stream);
    }
    log_.finish();
    leave_word();
  }

  // One helping, so that a program which prints without end does not keep signals waiting. False at
  // the end of the stream.
  bool read_output(int stream) {
    const ssize_t count = read(program_.output[stream], buffer_, sizeof buffer_);
    if (count > 0) log_.append(stream, buffer_, static_cast<size_t>(count));
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  // Nobody writes any more; what is in the pipe is bounded.
  void read_all_output(int stream) {
    while (true) {
      const ssize_t count = read(program_.output[stream], buffer_, sizeof buffer_);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      log_.append(stream, buffer_, static_cast<size_t>(count));
    }
  }

  void end_group() {
    ending_ = true;
    if (!exited_) kill(-program_.pid, SIGTERM);
    signal_children(SIGTERM, exited_ ? 0 : program_.pid);
  }

  void kill_all() {
    killing_ = true;
    if (!exited_) kill(-program_.pid, SIGKILL);
    signal_children(SIGKILL, 0);
  }

  // True when nothing is left.
  bool reap() {
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid != program_.pid) continue;
      exited_ = true;
      finished_ms_ = wall_clock_ms();
      exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (pid < 0 && errno == ECHILD) return exited_;
    // A container ends with its first process. While it is being stopped, the others have what is
    // left of the time that they were given.
    if (exited_ && (killing_ || !ending_)) kill_all();
    return false;
  }

  void leave_word() {
    char text[128];
    snprintf(text, sizeof text, "finished_ms %lld\ncode %d\n", static_cast<long long>(finished_ms_),
             exit_code_);
    for (int attempt = 0; attempt < kRecordAttempts; ++attempt) {
      if (write_record(options_.folder, "exit", text)) break;
      sleep(1);
    }
    // Only now: whoever is made to look must find it unlocked.
    close(kLock);
    touch(options_.folder);
  }

  const Options& options_;
  Started program_;
  LogFile log_;
  char buffer_[64 * 1024];
  bool ending_ = false;
  bool killing_ = false;
  bool exited_ = false;
  int exit_code_ = 0;
  int64_t finished_ms_ = 0;
};

int shim_main(int argc, char** argv) {
  static Options options;
  for (const int inherited : {kStatusPipe, kLock}) fcntl(inherited, F_SETFD, FD_CLOEXEC);
  close(kLock + 1);  // our own image
  if (!parse_options(argc, argv, &options)) {
    say("the shim does not understand its command line");
    return 2;
  }
  if (options.exec_only) become_program(options, kStatusPipe);
  // The agent waits for this process only; its child is init's.
  const pid_t child = fork();
  if (child < 0) {
    say(strerror(errno));
    return 1;
  }
  if (child > 0) return 0;
  setsid();
  prctl(PR_SET_NAME, "cotenant-shim");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  static Supervisor supervisor(options);
  return supervisor.run();
}

}  // namespace
}  // namespace shim

int main(int argc, char** argv) {
  return shim::shim_main(argc, argv);
}
