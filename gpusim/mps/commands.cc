// The console's verbs. Where NVIDIA's exact text is not public the answer is ours, marked "ours".
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

#include "common/pinned_limit.h"
#include "common/text.h"
#include "mps/control_daemon.h"
#include "mps/process_info.h"

namespace gpusim::mps {
namespace {

constexpr const char* kServerNotFound = "Server not found\n";   // ours; test doubles use it too
constexpr const char* kClientNotFound = "Client not found\n";   // ours
constexpr const char* kInvalidArgument = "Invalid argument\n";  // ours

std::optional<int32_t> parse_pid(const std::string& text) {
  uint64_t value = 0;
  if (!parse_number(text, &value) || value == 0 || value > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(value);
}

// "GPU-cb1213a3-d6a4-be7f": ps shows the first three groups.
std::string short_uuid(const std::string& uuid) {
  size_t at = 0;
  for (int dashes = 0; at < uuid.size(); ++at) {
    if (uuid[at] == '-' && ++dashes == 4) break;
  }
  return uuid.substr(0, at);
}

}  // namespace

struct ControlDaemon::Command {
  const char* name;
  size_t min_arguments;
  size_t max_arguments;
  std::string (ControlDaemon::*verb)(Console*, const Words&);
};

const ControlDaemon::Command ControlDaemon::kCommands[] = {
    {"get_server_list", 0, 0, &ControlDaemon::get_server_list},
    {"get_server_status", 1, 1, &ControlDaemon::get_server_status},
    {"start_server", 2, 3, &ControlDaemon::start_server_command},
    {"shutdown_server", 1, 2, &ControlDaemon::shutdown_server},
    {"get_client_list", 1, 1, &ControlDaemon::get_client_list},
    {"get_device_client_list", 0, 1, &ControlDaemon::get_device_client_list},
    {"ps", 0, 2, &ControlDaemon::ps},
    {"terminate_client", 2, 2, &ControlDaemon::terminate_client},
    {"set_default_active_thread_percentage", 1, 1, &ControlDaemon::set_default_percentage},
    {"get_default_active_thread_percentage", 0, 0, &ControlDaemon::get_default_percentage},
    {"set_active_thread_percentage", 2, 2, &ControlDaemon::set_percentage},
    {"get_active_thread_percentage", 1, 1, &ControlDaemon::get_percentage},
    {"set_default_device_pinned_mem_limit", 2, 2, &ControlDaemon::set_default_limit},
    {"get_default_device_pinned_mem_limit", 1, 1, &ControlDaemon::get_default_limit},
    {"set_device_pinned_mem_limit", 3, 3, &ControlDaemon::set_limit},
    {"get_device_pinned_mem_limit", 2, 2, &ControlDaemon::get_limit},
    {"set_default_client_priority", 1, 1, &ControlDaemon::set_default_priority},
    {"get_default_client_priority", 0, 0, &ControlDaemon::get_default_priority},
    {"device_query", 0, 2, &ControlDaemon::device_query},
    {"sm_partition", 3, 3, &ControlDaemon::sm_partition},
    {"lspart", 0, 0, &ControlDaemon::lspart},
    {"quit", 0, 2, &ControlDaemon::quit},
    {"gpusim", 1, 3, &ControlDaemon::gpusim_command},
};

// Older drivers do not know the younger commands (driver 470: k8s-device-plugin issue 669).
bool ControlDaemon::is_known(std::string_view command) const {
  if (command.ends_with("_device_pinned_mem_limit")) return traits_.has_pinned_limits;
  if (command == "terminate_client") return traits_.has_terminate;
  if (command == "sm_partition" || command == "lspart") return static_partitions_;
  return true;
}

std::string ControlDaemon::execute(Console* console, const Words& words) {
  if (v3_) return execute_v3(console, words);
  if (words.empty()) return "";
  for (const Command& command : kCommands) {
    if (words[0] != command.name || !is_known(command.name)) continue;
    const size_t arguments = words.size() - 1;
    if (arguments < command.min_arguments || arguments > command.max_arguments) {
      return kInvalidArgument;
    }
    return (this->*command.verb)(console, words);
  }
  return fmt::format("Unknown command: {}\n", words[0]);  // ours
}

std::string ControlDaemon::get_server_list(Console*, const Words&) {
  std::string out;
  for (const Server& server : servers_) out += fmt::format("{}\n", server.pid);
  return out;
}

std::string ControlDaemon::get_server_status(Console*, const Words& words) {
  const Server* server = find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  switch (server->state) {
    case ServerState::kStopped:
    case ServerState::kInitializing:
      return "INITIALIZING\n";
    case ServerState::kActive:
      return "ACTIVE\n";
    case ServerState::kFault:
      return "FAULT\n";
  }
  return "";
}

std::string ControlDaemon::start_server_command(Console*, const Words& words) {
  uint64_t uid = 0;
  if (words[1] != "-uid" || !parse_number(words[2], &uid) || uid > UINT32_MAX ||
      (words.size() == 4 && words[3] != "-mlopart")) {
    return kInvalidArgument;
  }
  if (quitting_) return "";
  const Server* present = accepting_server();
  if (present != nullptr || !servers_.empty()) return "";  // one server at a time
  start_server(multiuser_ ? geteuid() : static_cast<uint32_t>(uid));
  return "";
}

std::string ControlDaemon::shutdown_server(Console* console, const Words& words) {
  Server* server = find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  if (words.size() == 3 && words[2] != "-f") return kInvalidArgument;
  server->ending = true;
  console->waits_for_server_exit = server->pid;
  if (words.size() == 3) server->clients.clear();  // dropped: they get 806
  end_idle_servers(false);
  return "";
}

std::string ControlDaemon::get_client_list(Console*, const Words& words) {
  const Server* server = find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  std::string out;
  for (const ServerClient& client : server->clients) out += fmt::format("{}\n", client.pid);
  return out;
}

std::string ControlDaemon::get_device_client_list(Console*, const Words& words) {
  const int32_t only = words.size() == 2 ? parse_pid(words[1]).value_or(-1) : 0;
  std::string out;  // layout ours
  for (const Server& server : servers_) {
    if (only != 0 && server.pid != only) continue;
    for (size_t device = 0; device < server.uuids.size(); ++device) {
      out += server.uuids[device];
      for (const ServerClient& client : server.clients) {
        if ((client.devices >> device & 1) != 0) out += fmt::format(" {}", client.pid);
      }
      out += '\n';
    }
  }
  return out;
}

std::string ControlDaemon::ps(Console*, const Words& words) {
  int32_t only = 0;
  if (words.size() > 1) {
    if (words.size() != 3 || words[1] != "-p") return kInvalidArgument;
    only = parse_pid(words[2]).value_or(-1);
  }
  const auto row = [](const auto&... columns) {
    return fmt::format("{:<9} {:<5} {:<8} {:<23} {:<11} {}\n", columns...);
  };
  std::string out = row("PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND");
  for (const Server& server : servers_) {
    for (const ServerClient& client : server.clients) {
      if (only != 0 && client.pid != only) continue;
      for (size_t device = 0; device < server.uuids.size(); ++device) {
        if ((client.devices >> device & 1) == 0) continue;
        out += row(client.pid, 0, server.pid, short_uuid(server.uuids[device]),
                   pid_namespace(client.pid), command_of(client.pid));
      }
    }
  }
  return out;
}

std::string ControlDaemon::terminate_client(Console* console, const Words& words) {
  Server* server = find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  const int32_t pid = parse_pid(words[2]).value_or(0);
  const bool known = std::any_of(server->clients.begin(), server->clients.end(),
                                 [pid](const ServerClient& client) { return client.pid == pid; });
  if (!known) return kClientNotFound;
  if (settings_.terminate == Choice::kOff) return fmt::format("{}\n", kMpsConnectionFailed);
  ChannelMessage message = {};
  message.kind = ChannelKind::kTerminate;
  message.pid = pid;
  if (!send_to(server, message)) return fmt::format("{}\n", kMpsConnectionFailed);
  console->waits_for_termination = pid;
  return "";
}

std::string ControlDaemon::set_default_percentage(Console*, const Words& words) {
  const uint32_t hundredths = parse_thread_percentage(words[1].c_str());
  if (hundredths == 0) return kInvalidArgument;
  defaults_.hundredths = hundredths;
  return show_percent(hundredths) + "\n";
}

std::string ControlDaemon::get_default_percentage(Console*, const Words&) {
  return show_percent(defaults_.hundredths) + "\n";
}

std::string ControlDaemon::set_percentage(Console*, const Words& words) {
  Server* server = find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  const uint32_t hundredths = parse_thread_percentage(words[2].c_str());
  if (hundredths == 0) return kInvalidArgument;
  server->defaults.hundredths = hundredths;
  send_defaults(server);
  return show_percent(hundredths) + "\n";
}

std::string ControlDaemon::get_percentage(Console*, const Words& words) {
  const Server* server = find_server(parse_pid(words[1]).value_or(0));
  return server == nullptr ? kServerNotFound : show_percent(server->defaults.hundredths) + "\n";
}

// The key is checked against no device: a bad one is ignored when a server starts.
std::string ControlDaemon::set_default_limit(Console*, const Words& words) {
  uint64_t bytes = 0;
  if (!parse_memory_size(words[2], &bytes) || !defaults_.limits.has_room_for(words[1])) {
    return kInvalidArgument;
  }
  defaults_.limits.set(words[1], bytes);
  return "";
}

std::string ControlDaemon::get_default_limit(Console*, const Words& words) {
  const auto bytes = defaults_.limits.get(words[1]);
  return bytes ? show_limit(*bytes) + "\n" : "";  // silence when unset is ours
}

// For new clients of that server only; may exceed the default.
std::string ControlDaemon::set_limit(Console*, const Words& words) {
  Server* server = find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  uint64_t bytes = 0;
  if (!parse_memory_size(words[3], &bytes) || !server->defaults.limits.has_room_for(words[2])) {
    return kInvalidArgument;
  }
  server->defaults.limits.set(words[2], bytes);
  send_defaults(server);
  return "";
}

std::string ControlDaemon::get_limit(Console*, const Words& words) {
  const Server* server = find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  const auto bytes = server->defaults.limits.get(words[2]);
  return bytes ? show_limit(*bytes) + "\n" : "";
}

std::string ControlDaemon::set_default_priority(Console*, const Words& words) {
  if (words[1] != "0" && words[1] != "1") return kInvalidArgument;
  defaults_.priority = words[1] == "1" ? 1 : 0;
  return "";
}

std::string ControlDaemon::get_default_priority(Console*, const Words&) {
  return fmt::format("{}\n", defaults_.priority);
}

std::string ControlDaemon::device_query(Console*, const Words& words) {
  bool csv = false;
  int32_t only = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--csv") {
      csv = true;
    } else {
      only = parse_pid(words[i]).value_or(-1);
    }
  }
  if (only != 0 && find_server(only) == nullptr) return kServerNotFound;
  // Columns ours.
  std::string out =
      csv ? "server,ordinal,uuid\n" : fmt::format("{:<9} {:<8} {}\n", "SERVER", "ORDINAL", "UUID");
  for (const Server& server : servers_) {
    if (only != 0 && server.pid != only) continue;
    for (size_t i = 0; i < server.uuids.size(); ++i) {
      out += csv ? fmt::format("{},{},{}\n", server.pid, i, server.uuids[i])
                 : fmt::format("{:<9} {:<8} {}\n", server.pid, i, server.uuids[i]);
    }
  }
  return out;
}

std::string ControlDaemon::quit(Console* console, const Words& words) {
  uint64_t seconds = 0;
  if (words.size() > 1) {
    if (words.size() != 3 || words[1] != "-t" || !parse_number(words[2], &seconds) ||
        seconds > 1000000) {
      return kInvalidArgument;
    }
    quit_deadline_ms_ = now_ms() + seconds * 1000;
  }
  quitting_ = true;
  console->waits_for_quit = true;
  return "";
}

}  // namespace gpusim::mps
