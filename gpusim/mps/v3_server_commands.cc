// MPS v3: the verbs of servers and namespaces.
#include <fmt/format.h>

#include <algorithm>

#include "common/text.h"
#include "mps/v3_arguments.h"

namespace gpusim::mps {
namespace {

// The keys that servers and namespaces have in common.
std::optional<std::string> set_values(const V3Keys& keys, ClientDefaults* defaults,
                                      bool* has_percentage) {
  ClientDefaults changed = *defaults;
  std::optional<std::string> error;
  for (const auto& [key, value] : keys) {
    if (error) break;
    if (key == "pinned-memory-limit") error = set_v3_limit(value, &changed);
    if (key == "active-thread-percentage") {
      error = set_v3_percentage(value, &changed);
      *has_percentage = true;
    }
    if (key == "client-priority") error = set_v3_priority(value, &changed);
  }
  if (!error) *defaults = changed;
  return error;
}

}  // namespace

std::string ControlDaemon::v3_server_create(Console* console, const V3& arguments) {
  ServerSpec spec;
  spec.name = arguments.positional[0];
  if (!is_v3_name(spec.name)) {
    return fail(console, fmt::format("'{}' is no server name: lower case, digits and underscore, "
                                     "at most 64",
                                     spec.name));
  }
  if (arguments.has("uid")) {
    uint64_t uid = 0;
    if (!parse_number(arguments.value("uid"), &uid) || uid > UINT32_MAX) {
      return fail(console, fmt::format("--uid is a user id, not '{}'", arguments.value("uid")));
    }
    spec.uid = static_cast<uint32_t>(uid);
  }
  spec.allowed_devices = arguments.value("allowed-devices");
  bool ignored = false;
  auto error = check_v3_devices(spec.allowed_devices);
  if (!error) error = set_values(arguments.keys, &spec.defaults, &ignored);
  if (!error) error = create_server(spec);
  return error ? fail(console, *error) : "";
}

std::string ControlDaemon::v3_server_delete(Console* console, const V3& arguments) {
  Server* server = find_named(arguments.positional[0]);
  if (server == nullptr) {
    return fail(console, fmt::format("no server {}", arguments.positional[0]));
  }
  if (!server->clients.empty() && !arguments.has("force")) {
    return fail(console, fmt::format("server {} has {} clients; --force drops them", server->name,
                                     server->clients.size()));
  }
  if (server->pid == 0) {
    remove_server_files(server);
    servers_.remove_if([server](const Server& other) { return &other == server; });
    return "";
  }
  server->ending = true;
  server->clients.clear();
  console->waits_for_server_exit = server->pid;
  end_idle_servers(false);
  return "";
}

std::string ControlDaemon::v3_server_set(Console* console, const V3& arguments) {
  Server* server = find_named(arguments.positional[0]);
  if (server == nullptr) {
    return fail(console, fmt::format("no server {}", arguments.positional[0]));
  }
  bool ignored = false;
  if (const auto error = set_values(arguments.keys, &server->defaults, &ignored)) {
    return fail(console, *error);
  }
  send_defaults(server);
  return "";
}

std::string ControlDaemon::v3_server_list(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_v3_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  // `get` shows the values too.
  const bool is_get = !arguments.positional.empty();
  Table table;
  table.push_back(
      {"name", "uid", "pid", "status", "pipe-directory", "allowed-devices", "context-ids"});
  if (is_get) {
    for (const char* column :
         {"pinned-memory-limit", "active-thread-percentage", "client-priority"}) {
      table[0].emplace_back(column);
    }
  }
  constexpr const char* kStatus[] = {"Stopped", "Initializing", "Ready", "Fault"};
  for (const Server& server : servers_) {
    if (is_get && server.name != arguments.positional[0]) continue;
    std::vector<std::string> row = {
        server.name,
        fmt::format("{}", server.uid),
        server.pid == 0 ? "-" : fmt::format("{}", server.pid),
        kStatus[static_cast<size_t>(server.state)],
        server_folder(server.name),
        server.allowed_devices.empty() ? "-" : server.allowed_devices,
        "-",
    };
    if (is_get) {
      row.push_back(show_v3_limit(server.defaults));
      row.push_back(show_percent(server.defaults.hundredths));
      row.push_back(fmt::format("{}", server.defaults.priority));
    }
    table.push_back(std::move(row));
  }
  if (is_get && table.size() == 1) {
    return fail(console, fmt::format("no server {}", arguments.positional[0]));
  }
  return show_table(table, format);
}

std::string ControlDaemon::v3_namespace_create(Console* console, const V3& arguments) {
  Server* server = find_named(arguments.value("server"));
  if (server == nullptr)
    return fail(console, fmt::format("no server {}", arguments.value("server")));
  NamespaceSpec spec;
  spec.name = arguments.positional[0];
  if (!is_v3_name(spec.name)) {
    return fail(console, fmt::format("'{}' is no namespace name: lower case, digits and "
                                     "underscore, at most 64",
                                     spec.name));
  }
  auto error = set_values(arguments.keys, &spec.defaults, &spec.has_percentage);
  if (!error) error = create_namespace(server, spec);
  return error ? fail(console, *error) : "";
}

std::string ControlDaemon::v3_namespace_delete(Console* console, const V3& arguments) {
  Server* server = find_named(arguments.value("server"));
  const std::string& name = arguments.positional[0];
  if (server == nullptr)
    return fail(console, fmt::format("no server {}", arguments.value("server")));
  if (name == kDefaultNamespace) return fail(console, "the default namespace stays");
  for (Namespace& space : server->namespaces) {
    if (space.spec.name != name) continue;
    const auto clients =
        std::count_if(server->clients.begin(), server->clients.end(),
                      [&](const ServerClient& client) { return client.space == name; });
    if (clients != 0)
      return fail(console, fmt::format("namespace {} has {} clients", name, clients));
    remove_namespace_files(*server, &space);
    server->namespaces.remove_if([&](const Namespace& other) { return &other == &space; });
    return "";
  }
  return fail(console, fmt::format("no namespace {}", name));
}

std::string ControlDaemon::v3_namespace_set(Console* console, const V3& arguments) {
  Server* server = find_named(arguments.value("server"));
  if (server == nullptr)
    return fail(console, fmt::format("no server {}", arguments.value("server")));
  const std::string& name = arguments.positional[0];
  for (Namespace& space : server->namespaces) {
    if (space.spec.name != name) continue;
    const bool is_default = name == kDefaultNamespace;
    bool ignored = false;
    const auto error =
        set_values(arguments.keys, is_default ? &server->defaults : &space.spec.defaults,
                   is_default ? &ignored : &space.spec.has_percentage);
    if (error) return fail(console, *error);
    if (is_default) send_defaults(server);
    return "";
  }
  return fail(console, fmt::format("no namespace {}", name));
}

std::string ControlDaemon::v3_namespace_list(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_v3_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  const bool is_get = !arguments.positional.empty();
  if ((is_get || arguments.has("server")) && find_named(arguments.value("server")) == nullptr) {
    return fail(console, fmt::format("no server {}", arguments.value("server")));
  }
  Table table;
  table.push_back({"name", "server", "pipe-directory", "pinned-memory-limit",
                   "active-thread-percentage", "client-priority", "clients"});
  for (const Server& server : servers_) {
    if (arguments.has("server") && server.name != arguments.value("server")) continue;
    for (const Namespace& space : server.namespaces) {
      if (is_get && space.spec.name != arguments.positional[0]) continue;
      const bool is_default = space.spec.name == kDefaultNamespace;
      const ClientDefaults& values = is_default ? server.defaults : space.spec.defaults;
      const auto clients = std::count_if(
          server.clients.begin(), server.clients.end(),
          [&](const ServerClient& client) { return client.space == space.spec.name; });
      table.push_back({space.spec.name, server.name, server_folder(server.name, space.spec.name),
                       show_v3_limit(values), show_percent(values.hundredths),
                       fmt::format("{}", values.priority), fmt::format("{}", clients)});
    }
  }
  if (is_get && table.size() == 1) {
    return fail(console, fmt::format("no namespace {}", arguments.positional[0]));
  }
  return show_table(table, format);
}

}  // namespace gpusim::mps
