#include "mps/console.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "common/text.h"
#include "common/unix_socket.h"
#include "mps/mps_protocol.h"
#include "mps/paths.h"

namespace gpusim::mps {
namespace {

// False when the daemon went away before its last word.
bool print_answer(int fd) {
  static ConsoleReply reply;
  do {
    if (!receive_message(fd, &reply, sizeof reply) || reply.magic != kMpsMagic ||
        reply.length > sizeof reply.text) {
      return false;
    }
    fwrite(reply.text, 1, reply.length, stdout);
    fflush(stdout);
  } while (reply.is_last == 0);
  return true;
}

}  // namespace

int run_console() {
  const int fd = connect_seqpacket(pipe_directory().c_str(), kPrivilegedSocket, 0);
  if (fd < 0) {
    fputs("Cannot find MPS control daemon process\n", stderr);
    return 1;
  }
  const bool interactive = isatty(STDIN_FILENO) == 1;
  int exit_code = 0;
  std::string line;
  while (true) {
    if (interactive) std::cout << "> " << std::flush;
    // The last line may lack its newline: callers write a bare command and close the pipe.
    if (!std::getline(std::cin, line)) break;
    const std::string command(trim(line));
    if (command.empty()) continue;
    if (command.size() > kMaxCommand) {
      fputs("Command is too long\n", stderr);
      exit_code = 1;
      break;
    }
    if (!send_message(fd, command.data(), command.size()) || !print_answer(fd)) {
      fputs("Lost connection to MPS control daemon\n", stderr);
      exit_code = 1;
      break;
    }
    if (command == "quit" || command.starts_with("quit ")) break;
  }
  close(fd);
  return exit_code;
}

}  // namespace gpusim::mps
