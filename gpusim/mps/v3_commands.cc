// MPS v3: `nvidia-cuda-mps-control <module> <verb> [arguments] [--key=value]`. Modules, verbs, keys and
// columns as documented; where a text is not, it is ours. Errors go to standard error, exit code 1.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "common/driver_client.h"
#include "common/text.h"
#include "mps/control_daemon.h"
#include "mps/process_info.h"
#include "mps/table.h"

namespace gpusim::mps {

struct ControlDaemon::V3Arguments {
  std::vector<std::string> positional;
  std::map<std::string, std::string, std::less<>> keys;  // "--key=value"; "" without a value
  std::string value(std::string_view key) const {
    const auto found = keys.find(key);
    return found == keys.end() ? std::string() : found->second;
  }
  bool has(std::string_view key) const { return keys.contains(key); }
};

struct ControlDaemon::V3Command {
  const char* module;
  const char* verb;
  size_t positional;
  const char* keys;  // between blanks
  const char* usage;
  std::string (ControlDaemon::*action)(Console*, const V3&);
};

const ControlDaemon::V3Command ControlDaemon::kV3Commands[] = {
    {"server", "create", 1,
     "uid allowed-devices pinned-memory-limit active-thread-percentage client-priority",
     "<name> [--uid=UID] [--allowed-devices=UUID,..]", &ControlDaemon::v3_server_create},
    {"server", "delete", 1, "force", "<name> [--force]", &ControlDaemon::v3_server_delete},
    {"server", "set", 1, "pinned-memory-limit active-thread-percentage client-priority",
     "<name> [--pinned-memory-limit=SIZE] [--active-thread-percentage=P] [--client-priority=0|1]",
     &ControlDaemon::v3_server_set},
    {"server", "get", 1, "format", "<name> [--format=table|csv[,noheader]]",
     &ControlDaemon::v3_server_list},
    {"server", "list", 0, "format", "[--format=table|csv[,noheader]]",
     &ControlDaemon::v3_server_list},
    {"namespace", "create", 1,
     "server pinned-memory-limit active-thread-percentage client-priority",
     "<name> --server=NAME [--pinned-memory-limit=SIZE] [--active-thread-percentage=P]",
     &ControlDaemon::v3_namespace_create},
    {"namespace", "delete", 1, "server", "<name> --server=NAME",
     &ControlDaemon::v3_namespace_delete},
    {"namespace", "set", 1, "server pinned-memory-limit active-thread-percentage client-priority",
     "<name> --server=NAME [--pinned-memory-limit=SIZE] [--active-thread-percentage=P]",
     &ControlDaemon::v3_namespace_set},
    {"namespace", "get", 1, "server format", "<name> --server=NAME [--format=..]",
     &ControlDaemon::v3_namespace_list},
    {"namespace", "list", 0, "server format", "[--server=NAME] [--format=..]",
     &ControlDaemon::v3_namespace_list},
    {"client", "list", 0, "server all format", "--server=NAME | --all [--format=..]",
     &ControlDaemon::v3_client_list},
    {"client", "get", 1, "format", "<pid> [--format=..]", &ControlDaemon::v3_client_list},
    {"client", "terminate", 1, "", "<pid>", &ControlDaemon::v3_client_terminate},
    {"device", "list", 0, "format", "[--format=..]", &ControlDaemon::v3_device_list},
    {"feature", "list", 0, "format", "[--format=..]", &ControlDaemon::v3_feature_list},
    {"sm-partition", nullptr, 0, "", "", &ControlDaemon::v3_not_imitated},
    // Verbs ours: the documentation at hand names the module only.
    {"memacct", "get", 1, "format", "<cgroup path> [--format=..]", &ControlDaemon::v3_memacct_get},
    {"memacct", "set", 1, "device soft-limit hard-limit",
     "<cgroup path> --device=UUID [--soft-limit=MIB] [--hard-limit=MIB|max]",
     &ControlDaemon::v3_memacct_set},
    {"context-share", nullptr, 0, "", "", &ControlDaemon::v3_not_imitated},
};

std::string ControlDaemon::fail(Console* console, std::string_view text) {
  console->failed = true;
  return fmt::format("{}\n", text);
}

std::string ControlDaemon::execute_v3(Console* console, const Words& words) {
  console->failed = false;
  if (words.empty()) return "";
  if (words[0] == "gpusim" && words.size() > 1) return gpusim_command(console, words);
  if (words[0] == "quit") return quit(console, words);
  std::string verbs;
  for (const V3Command& command : kV3Commands) {
    if (words[0] != command.module) continue;
    if (command.verb == nullptr) return (this->*command.action)(console, {});
    verbs += fmt::format("{}{}", verbs.empty() ? "" : ", ", command.verb);
    if (words.size() < 2 || words[1] != command.verb) continue;
    const std::string usage =
        fmt::format("usage: {} {} {}", command.module, command.verb, command.usage);
    V3Arguments arguments;
    for (size_t i = 2; i < words.size(); ++i) {
      std::string_view value = words[i];
      if (!value.starts_with("--")) {
        arguments.positional.push_back(words[i]);
        continue;
      }
      const bool has_value = value.find('=') != std::string_view::npos;
      const std::string_view key = take_field(&value, '=').substr(2);
      const std::string known = fmt::format(" {} ", command.keys);
      if (key.empty() || known.find(fmt::format(" {} ", key)) == std::string::npos) {
        return fail(console, fmt::format("unknown option --{}; {}", key, usage));
      }
      const bool is_flag = key == "force" || key == "all";
      if (has_value == is_flag) {
        return fail(console,
                    fmt::format("--{} takes {} value; {}", key, is_flag ? "no" : "a", usage));
      }
      arguments.keys[std::string(key)] = std::string(value);
    }
    if (arguments.positional.size() != command.positional) return fail(console, usage);
    return (this->*command.action)(console, arguments);
  }
  if (!verbs.empty()) return fail(console, fmt::format("{} takes one of: {}", words[0], verbs));
  return fail(console, fmt::format("unknown module '{}': server, namespace, client, device, "
                                   "sm-partition, feature, memacct or context-share",
                                   words[0]));
}

namespace {

// The keys that servers and namespaces have in common.
std::optional<std::string> set_values(const std::map<std::string, std::string, std::less<>>& keys,
                                      ClientDefaults* defaults, bool* has_percentage) {
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

// Complains about --format. A text why not.
std::optional<std::string> read_format(const std::string& text, TableFormat* format) {
  if (text.empty() || text == "table") return std::nullopt;
  *format = text == "csv,noheader" ? TableFormat::kCsvWithoutHeader : TableFormat::kCsv;
  if (text == "csv" || text == "csv,noheader") return std::nullopt;
  return fmt::format("--format is table, csv or csv,noheader, not '{}'", text);
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
  if (const auto error = read_format(arguments.value("format"), &format)) {
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
  if (const auto error = read_format(arguments.value("format"), &format)) {
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

// One row for each device of a client, with the columns of `client get`.
std::string ControlDaemon::v3_client_list(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  const bool is_get = !arguments.positional.empty();
  if (!is_get && arguments.has("server") == arguments.has("all")) {
    return fail(console, "client list takes either --server=NAME or --all");
  }
  if (arguments.has("server") && find_named(arguments.value("server")) == nullptr) {
    return fail(console, fmt::format("no server {}", arguments.value("server")));
  }
  std::map<std::string, std::string, std::less<>> pci_ids;
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) == Status::kOk) {
    for (uint32_t i = 0; i < driver.device_count(); ++i) {
      DeviceInfo info;
      if (driver.get_device(i, &info) == Status::kOk) pci_ids[info.uuid] = pci_bus_id(info);
    }
  }
  Table table;
  table.push_back({"pid", "server", "device", "pci-id", "linux-ns", "maws-ns", "cmd"});
  for (const Server& server : servers_) {
    if (arguments.has("server") && server.name != arguments.value("server")) continue;
    for (const ServerClient& client : server.clients) {
      const std::string pid = fmt::format("{}", client.pid);
      if (is_get && pid != arguments.positional[0]) continue;
      for (size_t i = 0; i < server.uuids.size(); ++i) {
        if ((client.devices >> i & 1) == 0) continue;
        table.push_back({pid, server.name, server.uuids[i], pci_ids[server.uuids[i]],
                         pid_namespace(client.pid), client.space, command_of(client.pid)});
      }
    }
  }
  if (is_get && table.size() == 1) {
    return fail(console, fmt::format("no client {}", arguments.positional[0]));
  }
  return show_table(table, format);
}

std::string ControlDaemon::v3_client_terminate(Console* console, const V3& arguments) {
  for (const Server& server : servers_) {
    for (const ServerClient& client : server.clients) {
      const std::string pid = fmt::format("{}", client.pid);
      if (pid != arguments.positional[0]) continue;
      return terminate_client(console, {"terminate_client", fmt::format("{}", server.pid), pid});
    }
  }
  return fail(console, fmt::format("no client {}", arguments.positional[0]));
}

std::string ControlDaemon::v3_device_list(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) != Status::kOk) {
    return fail(console, fmt::format("no driver at {}", driver_folder()));
  }
  Table table;
  table.push_back({"uuid", "name", "pci-id", "servers"});
  for (uint32_t i = 0; i < driver.device_count(); ++i) {
    DeviceInfo info;
    if (driver.get_device(i, &info) != Status::kOk) continue;
    std::string servers;
    for (const Server& server : servers_) {
      const std::string uuid = info.uuid;
      if (std::find(server.uuids.begin(), server.uuids.end(), uuid) == server.uuids.end()) continue;
      servers += (servers.empty() ? "" : ";") + server.name;
    }
    table.push_back({info.uuid, info.name, pci_bus_id(info), servers.empty() ? "-" : servers});
  }
  return show_table(table, format);
}

// The device-memory cgroup, whose account gpusimd keeps: hard and soft limit, and what is used now.
std::string ControlDaemon::v3_memacct_get(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) != Status::kOk) {
    return fail(console, fmt::format("no driver at {}", driver_folder()));
  }
  Table table;
  table.push_back({"device", "soft-limit", "hard-limit", "current-used"});
  for (uint32_t i = 0; i < driver.device_count(); ++i) {
    DeviceInfo info;
    MemoryLimit limit = {};
    if (driver.get_device(i, &info) != Status::kOk) continue;
    const Status status = driver.get_memory_limit(i, arguments.positional[0].c_str(), &limit);
    if (status != Status::kOk) {
      return fail(console, fmt::format("{} has no memory account of {} (status {})", info.uuid,
                                       arguments.positional[0], static_cast<int>(status)));
    }
    const auto mib = [](uint64_t bytes) { return fmt::format("{} MiB", bytes / kMiB); };
    table.push_back({info.uuid, mib(limit.soft), limit.hard == UINT64_MAX ? "max" : mib(limit.hard),
                     mib(limit.current_used)});
  }
  return show_table(table, format);
}

std::string ControlDaemon::v3_memacct_set(Console* console, const V3& arguments) {
  const std::string& cgroup = arguments.positional[0];
  MemoryLimit limit = {};
  if (!copy_text(cgroup, limit.cgroup, sizeof limit.cgroup)) {
    return fail(console, "the cgroup's path is too long");
  }
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) != Status::kOk) {
    return fail(console, fmt::format("no driver at {}", driver_folder()));
  }
  for (uint32_t i = 0; i < driver.device_count(); ++i) {
    DeviceInfo info;
    if (driver.get_device(i, &info) != Status::kOk || info.uuid != arguments.value("device")) {
      continue;
    }
    MemoryLimit present = {};
    driver.get_memory_limit(i, cgroup.c_str(), &present);
    limit.soft = present.soft;
    limit.hard = present.hard == 0 ? UINT64_MAX : present.hard;
    for (const char* key : {"soft-limit", "hard-limit"}) {
      if (!arguments.has(key)) continue;
      uint64_t mib = 0;
      const bool is_max = arguments.value(key) == "max" && std::string_view(key) == "hard-limit";
      if (!is_max && (!parse_number(arguments.value(key), &mib) || mib > UINT64_MAX / kMiB)) {
        return fail(console, fmt::format("--{} is a whole number of MiB, not '{}'", key,
                                         arguments.value(key)));
      }
      (std::string_view(key) == "soft-limit" ? limit.soft : limit.hard) =
          is_max ? UINT64_MAX : mib * kMiB;
    }
    const Status status = driver.set_memory_limit(i, limit);
    if (status == Status::kOk) return "";
    return fail(console, fmt::format("{} refuses the limits of {} (status {})", info.uuid, cgroup,
                                     static_cast<int>(status)));
  }
  return fail(console, fmt::format("no device '{}'", arguments.value("device")));
}

std::string ControlDaemon::v3_feature_list(Console* console, const V3& arguments) {
  TableFormat format = TableFormat::kAligned;
  if (const auto error = read_format(arguments.value("format"), &format)) {
    return fail(console, *error);
  }
  return show_table({{"name", "enabled"}, {"memacct", "yes"}, {"context-share", "no"}}, format);
}

std::string ControlDaemon::v3_not_imitated(Console* console, const V3&) {
  return fail(console, "gpusim does not imitate this module");
}

}  // namespace gpusim::mps
