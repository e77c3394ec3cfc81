#include "mps/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "common/text.h"
#include "common/unix_socket.h"
#include "mps/mps_protocol.h"
#include "mps/paths.h"

namespace gpusim::mps {
namespace {

enum class Answer { kGood, kError, kLost };

Answer print_answer(int fd) {
  static ConsoleReply reply;
  do {
    if (!receive_message(fd, &reply, sizeof reply) || reply.magic != kMpsMagic ||
        reply.length > sizeof reply.text) {
      return Answer::kLost;
    }
    FILE* out = reply.failed != 0 ? stderr : stdout;
    fwrite(reply.text, 1, reply.length, out);
    fflush(out);
  } while (reply.is_last == 0);
  return reply.failed != 0 ? Answer::kError : Answer::kGood;
}

int connect_to_daemon() {
  for (const std::string& folder : console_directories()) {
    const int fd = connect_seqpacket(folder.c_str(), kPrivilegedSocket, 0);
    if (fd >= 0) return fd;
  }
  fputs("Cannot find MPS control daemon process\n", stderr);
  return -1;
}

Answer ask(int fd, const std::string& command) {
  if (command.size() > kMaxCommand) {
    fputs("Command is too long\n", stderr);
    return Answer::kLost;
  }
  if (!send_message(fd, command.data(), command.size())) {
    fputs("Lost connection to MPS control daemon\n", stderr);
    return Answer::kLost;
  }
  const Answer answer = print_answer(fd);
  if (answer == Answer::kLost) fputs("Lost connection to MPS control daemon\n", stderr);
  return answer;
}

}  // namespace

int run_console() {
  const int fd = connect_to_daemon();
  if (fd < 0) return 1;
  const bool interactive = isatty(STDIN_FILENO) == 1;
  int exit_code = 0;
  std::string line;
  while (true) {
    if (interactive) std::cout << "> " << std::flush;
    // The last line may lack its newline: callers write a bare command and close the pipe.
    if (!std::getline(std::cin, line)) break;
    const std::string command(trim(line));
    if (command.empty()) continue;
    const Answer answer = ask(fd, command);
    if (answer != Answer::kGood) exit_code = 1;
    if (answer == Answer::kLost || command == "quit" || command.starts_with("quit ")) break;
  }
  close(fd);
  return exit_code;
}

int run_command(const std::string& command) {
  const int fd = connect_to_daemon();
  if (fd < 0) return 1;
  const Answer answer = ask(fd, command);
  close(fd);
  return answer == Answer::kGood ? 0 : 1;
}

}  // namespace gpusim::mps
