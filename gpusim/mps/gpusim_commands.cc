// "gpusim VERB": faults of the daemon on demand. NVIDIA's console has no such command. These are
// obeyed in a hung daemon too, at once, and collide with no other session.
#include <fmt/format.h>

#include <csignal>

#include "common/text.h"
#include "mps/commands.h"

namespace gpusim::mps {

std::string gpusim_command(ControlDaemon& daemon, Console*, const Words& words) {
  const std::string& verb = words[1];
  const size_t arguments = words.size() - 2;
  const auto signal_servers = [&daemon](int number) {
    for (const Server& server : daemon.state().servers) {
      if (server.pid > 0) kill(server.pid, number);
    }
  };
  if (verb == "hang" && arguments == 0) {
    daemon.state().hung = true;
    return "";
  }
  if (verb == "hang-server" && arguments == 0) {
    signal_servers(SIGSTOP);
    return "";
  }
  if (verb == "kill-server" && arguments == 0) {
    signal_servers(SIGKILL);
    return "";
  }
  if (verb == "resume" && arguments == 0) {
    daemon.state().hung = false;
    daemon.state().settings.slow_ms = 0;
    signal_servers(SIGCONT);
    return "";
  }
  if (verb == "slow" && arguments == 1) {
    const auto error = daemon.state().settings.set("slow_ms", words[2]);
    return error ? fmt::format("slow: {}\n", *error) : "";
  }
  if (verb == "set" && arguments == 2) {
    const auto error = daemon.state().settings.set(words[2], words[3]);
    if (error) return fmt::format("set: {}\n", *error);
    daemon.state().traits = ask_driver_traits(daemon.state().settings);
    return "";
  }
  if (verb == "show" && arguments == 0) {
    return fmt::format("{}state={}\n", daemon.state().settings.text(),
                       daemon.state().hung ? "hung" : "serving");
  }
  return "gpusim hang | hang-server | kill-server | resume | slow MS | set KEY VALUE | show\n";
}

}  // namespace gpusim::mps
