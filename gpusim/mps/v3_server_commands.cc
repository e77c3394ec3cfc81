// MPS v3: the verbs of servers.
#include <fmt/format.h>
#include <unistd.h>

#include "common/text.h"
#include "mps/v3_arguments.h"
#include "mps/v3_values.h"

namespace gpusim::mps {
namespace {

std::string status_of(const Server& server) {
  constexpr const char* kStatus[] = {"Stopped", "Initializing", "Ready", "Fault"};
  return kStatus[static_cast<size_t>(server.state)];
}

V3Fields fields_of(const Server& server) {
  return {{"name", server.name},
          {"uid", fmt::format("{}", server.uid)},
          {"pid", server.pid == 0 ? "-" : fmt::format("{}", server.pid)},
          {"status", status_of(server)},
          {"pipe-directory", server_folder(server.name)},
          {"allowed-devices", server.allowed_devices.empty() ? "-" : server.allowed_devices}};
}

// A text why not. In multiuser mode every server is root's.
std::optional<std::string> read_uid(const DaemonState& state, const V3Arguments& arguments,
                                    std::optional<uint32_t>* uid) {
  if (!arguments.has("uid")) return std::nullopt;
  uint64_t number = 0;
  if (!parse_number(arguments.value("uid"), &number) || number > UINT32_MAX) {
    return fmt::format("--uid is a user id, not '{}'", arguments.value("uid"));
  }
  if (state.multiuser && number != geteuid()) {
    return fmt::format("only --uid={} is allowed in multiuser mode", geteuid());
  }
  *uid = static_cast<uint32_t>(number);
  return std::nullopt;
}

}  // namespace

std::string v3_server_create(ControlDaemon& daemon, Console* console,
                             const V3Arguments& arguments) {
  ServerSpec spec;
  auto error = read_uid(daemon.state(), arguments, &spec.uid);
  if (error) return fail(console, *error);
  if (!arguments.positional.empty()) {
    spec.name = arguments.positional[0];
  } else if (spec.uid) {
    spec.name = fmt::format("uid_{}", *spec.uid);
  } else {
    return fail(console, "server create takes a name or --uid=UID");
  }
  if (!is_v3_name(spec.name)) {
    return fail(console, fmt::format("'{}' is no server name: lower case, digits and underscore, "
                                     "at most 64",
                                     spec.name));
  }
  spec.allowed_devices = arguments.value("allowed-devices");
  error = check_v3_devices(spec.allowed_devices);
  if (!error) error = read_v3_flag(arguments, "locality-domains", &spec.locality_domains);
  if (!error) error = daemon.create_server(spec);
  return error ? fail(console, *error) : "";
}

std::string v3_server_delete(ControlDaemon& daemon, Console* console,
                             const V3Arguments& arguments) {
  Server* server = daemon.state().find_named(arguments.positional[0]);
  if (server == nullptr) return fail(console, no_server(arguments.positional[0]));
  if (!server->clients.empty() && !arguments.has("force")) {
    return fail(console, fmt::format("server {} has {} clients; --force drops them", server->name,
                                     server->clients.size()));
  }
  if (server->pid == 0) {
    daemon.remove_server_files(server);
    daemon.state().servers.remove_if([server](const Server& other) { return &other == server; });
    daemon.state().has_erased = true;
    return "";
  }
  server->ending = true;
  server->clients.clear();
  console->waits_for_server_exit = server->pid;
  daemon.end_idle_servers(false);
  return "";
}

std::string v3_server_set(ControlDaemon& daemon, Console* console, const V3Arguments& arguments) {
  Server* server = daemon.state().find_named(arguments.positional[0]);
  if (server == nullptr) return fail(console, no_server(arguments.positional[0]));
  if (arguments.keys.empty()) return fail(console, "server set takes at least one option");
  std::optional<uint32_t> uid;
  bool domains = server->locality_domains;
  auto error = read_uid(daemon.state(), arguments, &uid);
  if (!error) error = read_v3_flag(arguments, "locality-domains", &domains);
  if (error) return fail(console, *error);
  if (uid && *uid != server->uid && server->pid != 0) {
    return fail(console, fmt::format("server {} runs: its user cannot be changed", server->name));
  }
  if (domains && !server->partitions.rows().empty()) {
    return fail(console, fmt::format("server {} has SM partitions: no locality domains beside them",
                                     server->name));
  }
  bool ignored = false;
  error = set_v3_values(arguments.keys, &server->defaults, &ignored);
  if (error) return fail(console, *error);
  if (uid) server->uid = *uid;
  server->locality_domains = domains;
  daemon.send_defaults(server);
  return "";
}

std::string v3_server_get(ControlDaemon& daemon, Console* console, const V3Arguments& arguments) {
  const Server* server = daemon.state().find_named(arguments.positional[0]);
  if (server == nullptr) return fail(console, no_server(arguments.positional[0]));
  return answer_field(console, fields_of(*server), arguments.positional[1]);
}

std::string v3_server_list(ControlDaemon& daemon, Console* console, const V3Arguments& arguments) {
  const bool is_one = !arguments.positional.empty();
  if (is_one && daemon.state().find_named(arguments.positional[0]) == nullptr) {
    return fail(console, no_server(arguments.positional[0]));
  }
  Table table = {
      {"name", "uid", "pid", "status", "pipe-directory", "allowed-devices", "context-ids"}};
  for (const Server& server : daemon.state().servers) {
    if (is_one && server.name != arguments.positional[0]) continue;
    std::vector<std::string> row;
    for (const auto& [field, value] : fields_of(server)) row.push_back(value);
    row.emplace_back("-");
    table.push_back(std::move(row));
  }
  return answer_table(console, arguments, table);
}

}  // namespace gpusim::mps
