// "gpusim VERB": faults of the daemon on demand. NVIDIA's console has no such command. These are
// obeyed in a hung daemon too, at once, and collide with no other session.
#include <fmt/format.h>

#include <csignal>

#include "common/text.h"
#include "mps/control_daemon.h"

namespace gpusim::mps {

std::string ControlDaemon::gpusim_command(Console*, const Words& words) {
  const std::string& verb = words[1];
  const size_t arguments = words.size() - 2;
  const auto signal_servers = [this](int number) {
    for (const Server& server : servers_) kill(server.pid, number);
  };
  if (verb == "hang" && arguments == 0) {
    hung_ = true;
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
    hung_ = false;
    settings_.slow_ms = 0;
    signal_servers(SIGCONT);
    return "";
  }
  if (verb == "slow" && arguments == 1) {
    const auto error = settings_.set("slow_ms", words[2]);
    return error ? fmt::format("slow: {}\n", *error) : "";
  }
  if (verb == "set" && arguments == 2) {
    const auto error = settings_.set(words[2], words[3]);
    if (error) return fmt::format("set: {}\n", *error);
    traits_ = ask_driver_traits(settings_);
    return "";
  }
  if (verb == "show" && arguments == 0) {
    return fmt::format("{}state={}\n", settings_.text(), hung_ ? "hung" : "serving");
  }
  return "gpusim hang | hang-server | kill-server | resume | slow MS | set KEY VALUE | show\n";
}

}  // namespace gpusim::mps
