// Sessions on `control_privileged`.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/text.h"
#include "common/unix_socket.h"
#include "mps/commands.h"
#include "mps/console.h"

namespace gpusim::mps {
namespace {

constexpr size_t kMaxConsoles = 64;

bool is_for_gpusim(std::string_view command) {
  return command == "gpusim" || command.starts_with("gpusim ");
}

}  // namespace

void ControlDaemon::accept_console() {
  const int fd = accept4(privileged_fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  if (state_.consoles.size() >= kMaxConsoles) {
    close(fd);
    return;
  }
  state_.consoles.emplace_back().fd = fd;
}

// Sessions that wait for the end of a server or of the daemon do not count, nor does a prompt at which
// nobody types: the daemon is not busy with them. Which of two fails on the real thing is not known; here it is the later one.
bool ControlDaemon::collides(const Console& console) const {
  if (state_.settings.collide == Choice::kOff || console.in_session) return false;
  const uint64_t now = now_ms();
  return std::any_of(state_.consoles.begin(), state_.consoles.end(), [&](const Console& other) {
    const bool is_busy = other.stashed || other.late_answer ||
                         now - other.last_command_ms < state_.settings.collide_ms;
    return &other != &console && other.in_session && is_busy && !other.closed && !other.waits();
  });
}

void ControlDaemon::read_command(Console* console) {
  char text[kMaxCommand];
  const ssize_t size = recv(console->fd, text, sizeof text, MSG_DONTWAIT | MSG_TRUNC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0 || static_cast<size_t>(size) > sizeof text) {
    if (!state_.hung && console->in_session) state_.log.line("UI closed");
    console->closed = true;
    return;
  }
  if (console->waits() || console->late_answer) return;  // one command at a time
  const std::string command(text, static_cast<size_t>(size));
  if (is_for_gpusim(command)) {
    obey(console, command);
    return;
  }
  if (collides(*console)) {
    state_.log.line("NEW UI");
    state_.log.line("UI closed");
    console->closed = true;
    return;
  }
  console->last_command_ms = now_ms();
  if (state_.hung) {
    console->in_session = true;
    console->stashed = command;
    return;
  }
  if (!console->in_session) {
    state_.log.line("Accepting connection...");
    state_.log.line("NEW UI");
  }
  console->in_session = true;
  state_.log.line(fmt::format("Cmd:{}", command));
  obey(console, command);
}

void ControlDaemon::obey(Console* console, const std::string& command) {
  Words words;
  std::string_view rest = command;
  while (!rest.empty()) {
    const std::string_view word = trim(take_field(&rest, ' '));
    if (!word.empty()) words.emplace_back(word);
  }
  const std::string result = execute(*this, console, words);
  if (is_for_gpusim(command)) {
    answer(console, result);
    return;
  }
  if (!result.empty()) state_.log.line(trim(result));
  if (console->waits()) return;
  if (state_.settings.slow_ms == 0) {
    answer(console, result);
    return;
  }
  console->late_answer = result;
  console->due_ms = now_ms() + state_.settings.slow_ms;
}

void ControlDaemon::send_late_answers() {
  for (Console& console : state_.consoles) {
    if (console.stashed) {
      const std::string command = *console.stashed;
      console.stashed.reset();
      obey(&console, command);
    }
    if (!console.late_answer || now_ms() < console.due_ms) continue;
    answer(&console, *console.late_answer);
    console.late_answer.reset();
  }
}

void ControlDaemon::end_closed_consoles() {
  std::erase_if(state_.consoles, [](const Console& console) {
    if (console.closed) close(console.fd);
    return console.closed;
  });
}

void ControlDaemon::answer(Console* console, std::string_view text) {
  auto reply = std::make_unique<ConsoleReply>();
  reply->magic = kMpsMagic;
  reply->failed = console->failed ? 1 : 0;
  do {
    const size_t part = std::min(text.size(), sizeof reply->text);
    memcpy(reply->text, text.data(), part);
    text.remove_prefix(part);
    reply->length = static_cast<uint32_t>(part);
    reply->is_last = text.empty() ? 1 : 0;
    if (!send_message(console->fd, reply.get(), sizeof *reply, MSG_DONTWAIT)) {
      console->closed = true;
      return;
    }
  } while (!text.empty());
}

}  // namespace gpusim::mps
