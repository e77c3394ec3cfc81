// MPS v3: `nvidia-cuda-mps-control <module> <verb> [arguments] [--key=value]`. Modules, verbs, keys and
// columns as documented; where a text is not, it is ours. Errors go to standard error, exit code 1.
#include <fmt/format.h>

#include "common/text.h"
#include "mps/v3_arguments.h"

namespace gpusim::mps {

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

std::optional<std::string> read_v3_format(const std::string& text, TableFormat* format) {
  if (text.empty() || text == "table") return std::nullopt;
  *format = text == "csv,noheader" ? TableFormat::kCsvWithoutHeader : TableFormat::kCsv;
  if (text == "csv" || text == "csv,noheader") return std::nullopt;
  return fmt::format("--format is table, csv or csv,noheader, not '{}'", text);
}

}  // namespace gpusim::mps
