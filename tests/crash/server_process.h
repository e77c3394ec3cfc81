// `cotenant server` as a child process on a data folder, for tests that kill it.
#pragma once

#include <sys/types.h>

#include <string>

namespace cotenant::tests {

class ServerProcess {
 public:
  // Starts it and waits until it answers. The binary is COTENANT_TEST_BINARY.
  ServerProcess(const std::string& data_dir, int port);
  ~ServerProcess();  // SIGKILL
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  bool answers() const { return answers_; }
  pid_t pid() const { return pid_; }
  // SIGKILL, and waits for its end.
  void kill();
  // Waits for an end of its own; -1: it did not end within `seconds`.
  int wait_for_exit(int seconds);
  // What it has written to standard error.
  std::string errors() const;

 private:
  const std::string error_file_;
  pid_t pid_ = -1;
  bool answers_ = false;
};

// A TCP port of 127.0.0.1 that is free now.
int free_port();

}  // namespace cotenant::tests
