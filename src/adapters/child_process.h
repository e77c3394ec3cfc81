// Runs one short-lived program to its end, within a time limit, and gives back what it printed.
//
// Any thread; each call stands alone. The child gets standard input, output and error and no other
// descriptor (it may leave a daemon behind that outlives us and must not hold our sockets, locks or
// terminal), the environment it is given and nothing of ours, default signal handlers, an empty
// signal mask and "/" as its working directory. On expiry it is killed with its process group and
// reaped; a child that even SIGKILL does not end (it hangs in the driver) is reaped by a later
// call.
//
// Errors: kIo (the program cannot be started; the message names it).
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace cotenant::adapters {

// The input is put into the pipe before the child starts, so it must fit there (POSIX: PIPE_BUF).
inline constexpr std::size_t kChildInputBytes = 4096;
// Output beyond this is read and dropped.
inline constexpr std::size_t kChildOutputBytes = 1024 * 1024;

struct ChildSpec {
  std::string program;                   // a path, or a name that is looked up in our PATH
  std::vector<std::string> arguments;    // without argv[0]
  std::vector<std::string> environment;  // "NAME=value", the whole of it
  std::string input;                     // standard input, then end of file
  // When set, output and error go to this file (made anew, 0644) instead of being captured: a
  // daemon that keeps its launcher's output open would otherwise hold our pipe.
  std::string output_file;
  bool new_session = false;  // setsid(); else a process group of its own
  std::chrono::milliseconds timeout{3000};
};

struct ChildOutcome {
  bool timed_out = false;
  int exit_code = 0;  // when it exited by itself
  int signal = 0;     // when a signal ended it
  std::string output;
  std::string error;

  bool succeeded() const { return !timed_out && signal == 0 && exit_code == 0; }
};

base::Result<ChildOutcome> run_child(const ChildSpec& spec);

}  // namespace cotenant::adapters
