// MPS v3: the verbs of namespaces.
#include <fmt/format.h>

#include <algorithm>

#include "mps/v3_arguments.h"
#include "mps/v3_values.h"

namespace gpusim::mps {
namespace {

V3Fields fields_of(const Server& server, const Namespace& space) {
  constexpr const char* kStatus[] = {"Stopped", "Initializing", "Ready", "Fault"};
  // The default one's values are the server's.
  const bool is_default = space.spec.name == kDefaultNamespace;
  const ClientDefaults& values = is_default ? server.defaults : space.spec.defaults;
  return {{"name", space.spec.name},
          {"server", server.name},
          {"server-status", kStatus[static_cast<size_t>(server.state)]},
          {"pinned-memory-limit", show_v3_limit(values)},
          {"active-thread-percentage", show_percent(values.hundredths)},
          {"client-priority", fmt::format("{}", values.priority)},
          {"pipe-directory", server_folder(server.name, space.spec.name)}};
}

Namespace* find_namespace(Server* server, const std::string& name) {
  for (Namespace& space : server->namespaces) {
    if (space.spec.name == name) return &space;
  }
  return nullptr;
}

}  // namespace

std::optional<std::string> set_v3_values(const V3Keys& keys, ClientDefaults* defaults,
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

std::string no_server(std::string_view name) {
  return fmt::format("no server {}", name);
}

std::string v3_namespace_create(ControlDaemon& daemon, Console* console,
                                const V3Arguments& arguments) {
  Server* server = daemon.state().find_named(arguments.value("server"));
  if (server == nullptr) return fail(console, no_server(arguments.value("server")));
  NamespaceSpec spec;
  spec.name = arguments.positional[0];
  if (!is_v3_name(spec.name)) {
    return fail(console, fmt::format("'{}' is no namespace name: lower case, digits and "
                                     "underscore, at most 64",
                                     spec.name));
  }
  const auto error = daemon.create_namespace(server, spec);
  return error ? fail(console, *error) : "";
}

// Clients that are there live on, with the limits that they have.
std::string v3_namespace_delete(ControlDaemon& daemon, Console* console,
                                const V3Arguments& arguments) {
  Server* server = daemon.state().find_named(arguments.value("server"));
  const std::string& name = arguments.positional[0];
  if (server == nullptr) return fail(console, no_server(arguments.value("server")));
  if (name == kDefaultNamespace) return fail(console, "the default namespace stays");
  Namespace* space = find_namespace(server, name);
  if (space == nullptr) return fail(console, fmt::format("no namespace {}", name));
  const auto clients =
      std::count_if(server->clients.begin(), server->clients.end(),
                    [&](const ServerClient& client) { return client.space == name; });
  if (clients != 0 && !arguments.has("force")) {
    return fail(console,
                fmt::format("namespace {} has {} clients; --force deletes it", name, clients));
  }
  daemon.remove_namespace_files(*server, space);
  server->namespaces.remove_if([&](const Namespace& other) { return &other == space; });
  daemon.state().has_erased = true;
  return "";
}

std::string v3_namespace_set(ControlDaemon& daemon, Console* console,
                             const V3Arguments& arguments) {
  Server* server = daemon.state().find_named(arguments.value("server"));
  if (server == nullptr) return fail(console, no_server(arguments.value("server")));
  if (arguments.keys.size() < 2) return fail(console, "namespace set takes at least one option");
  const std::string& name = arguments.positional[0];
  Namespace* space = find_namespace(server, name);
  if (space == nullptr) return fail(console, fmt::format("no namespace {}", name));
  const bool is_default = name == kDefaultNamespace;
  bool ignored = false;
  const auto error =
      set_v3_values(arguments.keys, is_default ? &server->defaults : &space->spec.defaults,
                    is_default ? &ignored : &space->spec.has_percentage);
  if (error) return fail(console, *error);
  if (is_default) daemon.send_defaults(server);
  return "";
}

std::string v3_namespace_get(ControlDaemon& daemon, Console* console,
                             const V3Arguments& arguments) {
  Server* server = daemon.state().find_named(arguments.positional[1]);
  if (server == nullptr) return fail(console, no_server(arguments.positional[1]));
  const Namespace* space = find_namespace(server, arguments.positional[0]);
  if (space == nullptr) {
    return fail(console, fmt::format("no namespace {}", arguments.positional[0]));
  }
  return answer_field(console, fields_of(*server, *space), arguments.positional[2]);
}

std::string v3_namespace_list(ControlDaemon& daemon, Console* console,
                              const V3Arguments& arguments) {
  const bool is_one = !arguments.positional.empty();
  if (arguments.has("server") && daemon.state().find_named(arguments.value("server")) == nullptr) {
    return fail(console, no_server(arguments.value("server")));
  }
  Table table = {{"name", "server", "server-status", "pinned-memory-limit",
                  "active-thread-percentage", "client-priority", "pipe-directory"}};
  for (const Server& server : daemon.state().servers) {
    if (arguments.has("server") && server.name != arguments.value("server")) continue;
    for (const Namespace& space : server.namespaces) {
      if (is_one && space.spec.name != arguments.positional[0]) continue;
      std::vector<std::string> row;
      for (const auto& [field, value] : fields_of(server, space)) row.push_back(value);
      table.push_back(std::move(row));
    }
  }
  if (is_one && table.size() == 1) {
    return fail(console, fmt::format("no namespace {}", arguments.positional[0]));
  }
  return answer_table(console, arguments, table);
}

}  // namespace gpusim::mps
