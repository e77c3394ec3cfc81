// The console's verbs. Where NVIDIA's exact text is not public the answer is ours, marked "ours".
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "common/text.h"
#include "mps/commands.h"
#include "mps/process_info.h"

namespace gpusim::mps {
namespace {

// "GPU-cb1213a3-d6a4-be7f": ps shows the first three groups.
std::string short_uuid(const std::string& uuid) {
  size_t at = 0;
  for (int dashes = 0; at < uuid.size(); ++at) {
    if (uuid[at] == '-' && ++dashes == 4) break;
  }
  return uuid.substr(0, at);
}

std::string get_server_list(ControlDaemon& daemon, Console*, const Words&) {
  std::string out;
  for (const Server& server : daemon.state().servers) out += fmt::format("{}\n", server.pid);
  return out;
}

std::string get_server_status(ControlDaemon& daemon, Console*, const Words& words) {
  const Server* server = daemon.state().find_server(parse_pid(words[1]).value_or(0));
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

std::string start_server(ControlDaemon& daemon, Console*, const Words& words) {
  uint64_t uid = 0;
  if (words[1] != "-uid" || !parse_number(words[2], &uid) || uid > UINT32_MAX ||
      (words.size() == 4 && words[3] != "-mlopart")) {
    return kInvalidArgument;
  }
  if (daemon.state().quitting) return "";
  const Server* present = daemon.state().accepting_server();
  if (present != nullptr || !daemon.state().servers.empty()) return "";  // one server at a time
  daemon.start_server(daemon.state().multiuser ? geteuid() : static_cast<uint32_t>(uid));
  return "";
}

std::string shutdown_server(ControlDaemon& daemon, Console* console, const Words& words) {
  Server* server = daemon.state().find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  if (words.size() == 3 && words[2] != "-f") return kInvalidArgument;
  server->ending = true;
  console->waits_for_server_exit = server->pid;
  if (words.size() == 3) server->clients.clear();  // dropped: they get 806
  daemon.end_idle_servers(false);
  return "";
}

std::string get_client_list(ControlDaemon& daemon, Console*, const Words& words) {
  const Server* server = daemon.state().find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  std::string out;
  for (const ServerClient& client : server->clients) out += fmt::format("{}\n", client.pid);
  return out;
}

std::string get_device_client_list(ControlDaemon& daemon, Console*, const Words& words) {
  const int32_t only = words.size() == 2 ? parse_pid(words[1]).value_or(-1) : 0;
  std::string out;  // layout ours
  for (const Server& server : daemon.state().servers) {
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

// Of one server, by its pid, or of all.
std::string ps(ControlDaemon& daemon, Console*, const Words& words) {
  int32_t only = 0;
  if (words.size() > 1) {
    if (words.size() != 3 || words[1] != "-p") return kInvalidArgument;
    only = parse_pid(words[2]).value_or(-1);
  }
  const auto row = [](const auto&... columns) {
    return fmt::format("{:<9} {:<5} {:<8} {:<23} {:<11} {}\n", columns...);
  };
  std::string out = row("PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND");
  for (const Server& server : daemon.state().servers) {
    if (only != 0 && server.pid != only) continue;
    for (const ServerClient& client : server.clients) {
      for (size_t device = 0; device < server.uuids.size(); ++device) {
        if ((client.devices >> device & 1) == 0) continue;
        out += row(client.pid, client.number, server.pid, short_uuid(server.uuids[device]),
                   pid_namespace(client.pid), command_of(client.pid));
      }
    }
  }
  return out;
}

std::string device_query(ControlDaemon& daemon, Console*, const Words& words) {
  bool csv = false;
  int32_t only = 0;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--csv") {
      csv = true;
    } else {
      only = parse_pid(words[i]).value_or(-1);
    }
  }
  if (only != 0 && daemon.state().find_server(only) == nullptr) return kServerNotFound;
  // Columns ours.
  std::string out =
      csv ? "server,ordinal,uuid\n" : fmt::format("{:<9} {:<8} {}\n", "SERVER", "ORDINAL", "UUID");
  for (const Server& server : daemon.state().servers) {
    if (only != 0 && server.pid != only) continue;
    for (size_t i = 0; i < server.uuids.size(); ++i) {
      out += csv ? fmt::format("{},{},{}\n", server.pid, i, server.uuids[i])
                 : fmt::format("{:<9} {:<8} {}\n", server.pid, i, server.uuids[i]);
    }
  }
  return out;
}

struct Command {
  const char* name;
  size_t min_arguments;
  size_t max_arguments;
  Verb* verb;
};

constexpr Command kCommands[] = {
    {"get_server_list", 0, 0, get_server_list},
    {"get_server_status", 1, 1, get_server_status},
    {"start_server", 2, 3, start_server},
    {"shutdown_server", 1, 2, shutdown_server},
    {"get_client_list", 1, 1, get_client_list},
    {"get_device_client_list", 0, 1, get_device_client_list},
    {"ps", 0, 2, ps},
    {"terminate_client", 2, 2, terminate_client},
    {"set_default_active_thread_percentage", 1, 1, set_default_percentage},
    {"get_default_active_thread_percentage", 0, 0, get_default_percentage},
    {"set_active_thread_percentage", 2, 2, set_percentage},
    {"get_active_thread_percentage", 1, 1, get_percentage},
    {"set_default_device_pinned_mem_limit", 2, 2, set_default_limit},
    {"get_default_device_pinned_mem_limit", 1, 1, get_default_limit},
    {"set_device_pinned_mem_limit", 3, 3, set_limit},
    {"get_device_pinned_mem_limit", 2, 2, get_limit},
    {"set_default_client_priority", 1, 1, set_default_priority},
    {"get_default_client_priority", 0, 0, get_default_priority},
    {"device_query", 0, 2, device_query},
    {"sm_partition", 3, 3, sm_partition},
    {"lspart", 0, 0, lspart},
    {"quit", 0, 2, quit},
    {"gpusim", 1, 3, gpusim_command},
};

// Older drivers do not know the younger commands (driver 470: k8s-device-plugin issue 669).
bool is_known(const DaemonState& state, std::string_view command) {
  if (command.ends_with("_device_pinned_mem_limit")) return state.traits.has_pinned_limits;
  if (command == "terminate_client") return state.traits.has_terminate;
  if (command == "sm_partition" || command == "lspart") return state.static_partitions;
  return true;
}

}  // namespace

std::optional<int32_t> parse_pid(std::string_view text) {
  uint64_t value = 0;
  if (!parse_number(text, &value) || value == 0 || value > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(value);
}

std::string execute(ControlDaemon& daemon, Console* console, const Words& words) {
  if (daemon.state().v3) return execute_v3(daemon, console, words);
  if (words.empty()) return "";
  for (const Command& command : kCommands) {
    if (words[0] != command.name || !is_known(daemon.state(), command.name)) continue;
    const size_t arguments = words.size() - 1;
    if (arguments < command.min_arguments || arguments > command.max_arguments) {
      return kInvalidArgument;
    }
    return command.verb(daemon, console, words);
  }
  return fmt::format("Unknown command: {}\n", words[0]);  // ours
}

std::string terminate_client(ControlDaemon& daemon, Console* console, const Words& words) {
  Server* server = daemon.state().find_server(parse_pid(words[1]).value_or(0));
  if (server == nullptr) return kServerNotFound;
  const int32_t pid = parse_pid(words[2]).value_or(-1);
  const auto client = std::find_if(server->clients.begin(), server->clients.end(),
                                   [pid](const ServerClient& c) { return c.pid == pid; });
  if (client == server->clients.end()) return kClientNotFound;
  if (daemon.state().settings.terminate == Choice::kOff)
    return fmt::format("{}\n", kMpsConnectionFailed);
  ChannelMessage message = {};
  message.kind = ChannelKind::kTerminate;
  message.pid = client->id;
  if (!daemon.send_to(server, message)) return fmt::format("{}\n", kMpsConnectionFailed);
  console->waits_for_termination = client->id;
  console->terminating_server = server->pid;
  return "";
}

std::string quit(ControlDaemon& daemon, Console* console, const Words& words) {
  uint64_t seconds = 0;
  if (words.size() > 1) {
    if (words.size() != 3 || words[1] != "-t" || !parse_number(words[2], &seconds) ||
        seconds > 1000000) {
      return kInvalidArgument;
    }
    daemon.state().quit_deadline_ms = now_ms() + seconds * 1000;
  }
  daemon.state().quitting = true;
  console->waits_for_quit = true;
  return "";
}

}  // namespace gpusim::mps
