// The console's verbs for what clients get: percentages, memory limits, priorities. A limit that is
// set is not echoed, a percentage is (MPS documentation, v2 interface).
#include <fmt/format.h>

#include "common/pinned_limit.h"
#include "common/text.h"
#include "mps/commands.h"

namespace gpusim::mps {

std::string set_default_percentage(ControlDaemon& daemon, Console*, const Words& words) {
  const uint32_t hundredths = parse_thread_percentage(words[1].c_str());
  if (hundredths == 0) return kInvalidArgument;
  daemon.state().defaults.hundredths = hundredths;
  return show_percent(hundredths) + "\n";
}

std::string get_default_percentage(ControlDaemon& daemon, Console*, const Words&) {
  return show_percent(daemon.state().defaults.hundredths) + "\n";
}

std::string set_percentage(ControlDaemon& daemon, Console*, const Words& words) {
  Server* server = daemon.state().find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  const uint32_t hundredths = parse_thread_percentage(words[2].c_str());
  if (hundredths == 0) return kInvalidArgument;
  server->defaults.hundredths = hundredths;
  daemon.send_defaults(server);
  return show_percent(hundredths) + "\n";
}

std::string get_percentage(ControlDaemon& daemon, Console*, const Words& words) {
  const Server* server = daemon.state().find_server(parse_pid(words[1]).value_or(0));
  return server == nullptr ? kServerNotFound : show_percent(server->defaults.hundredths) + "\n";
}

// The key is checked against no device: a bad one is ignored when a server starts.
std::string set_default_limit(ControlDaemon& daemon, Console*, const Words& words) {
  uint64_t bytes = 0;
  if (!parse_memory_size(words[2], &bytes) ||
      !daemon.state().defaults.limits.has_room_for(words[1])) {
    return kInvalidArgument;
  }
  daemon.state().defaults.limits.set(words[1], bytes);
  return "";
}

std::string get_default_limit(ControlDaemon& daemon, Console*, const Words& words) {
  const auto bytes = daemon.state().defaults.limits.get(words[1]);
  return bytes ? show_limit(*bytes) + "\n" : "";  // silence when unset is ours
}

// For new clients of that server only; may exceed the default.
std::string set_limit(ControlDaemon& daemon, Console*, const Words& words) {
  Server* server = daemon.state().find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  uint64_t bytes = 0;
  if (!parse_memory_size(words[3], &bytes) || !server->defaults.limits.has_room_for(words[2])) {
    return kInvalidArgument;
  }
  server->defaults.limits.set(words[2], bytes);
  daemon.send_defaults(server);
  return "";
}

std::string get_limit(ControlDaemon& daemon, Console*, const Words& words) {
  const Server* server = daemon.state().find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  const auto bytes = server->defaults.limits.get(words[2]);
  return bytes ? show_limit(*bytes) + "\n" : "";
}

std::string set_default_priority(ControlDaemon& daemon, Console*, const Words& words) {
  if (words[1] != "0" && words[1] != "1") return kInvalidArgument;
  daemon.state().defaults.priority = words[1] == "1" ? 1 : 0;
  return "";
}

std::string get_default_priority(ControlDaemon& daemon, Console*, const Words&) {
  return fmt::format("{}\n", daemon.state().defaults.priority);
}

}  // namespace gpusim::mps
