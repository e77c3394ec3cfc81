// MPS v3: `nvidia-cuda-mps-control <module> <verb> [arguments] [--key=value]`. Modules, verbs, keys,
// columns and fields as documented (MPS documentation, v3 interface); the texts of errors are ours.
// Errors go to standard error, exit code 1.
#include <fmt/format.h>

#include "common/text.h"
#include "mps/v3_arguments.h"

namespace gpusim::mps {
namespace {

struct V3Command {
  const char* module;
  const char* verb;
  size_t min_positional;
  size_t max_positional;
  const char* keys;  // between blanks
  const char* usage;
  V3Verb* action;
};

constexpr V3Command kV3Commands[] = {
    {"server", "create", 0, 1, "uid allowed-devices locality-domains",
     "[<name>] [--uid=UID] [--allowed-devices=UUID,..] [--locality-domains=true|false]",
     v3_server_create},
    {"server", "delete", 1, 1, "force", "<name> [--force]", v3_server_delete},
    {"server", "list", 0, 1, "format", "[<name>] [--format=table|csv[,noheader]]", v3_server_list},
    {"server", "set", 1, 1,
     "uid pinned-memory-limit active-thread-percentage locality-domains client-priority",
     "<name> [--uid=UID] [--pinned-memory-limit=SIZE] [--active-thread-percentage=P] "
     "[--locality-domains=true|false] [--client-priority=0|1]",
     v3_server_set},
    {"server", "get", 2, 2, "", "<name> <field>", v3_server_get},
    {"namespace", "create", 1, 1, "server", "<name> --server=NAME", v3_namespace_create},
    {"namespace", "delete", 1, 1, "server force", "<name> --server=NAME [--force]",
     v3_namespace_delete},
    {"namespace", "list", 0, 1, "server format",
     "[<name>] [--server=NAME] [--format=table|csv[,noheader]]", v3_namespace_list},
    {"namespace", "set", 1, 1,
     "server pinned-memory-limit active-thread-percentage client-priority",
     "<name> --server=NAME [--pinned-memory-limit=SIZE] [--active-thread-percentage=P] "
     "[--client-priority=0|1]",
     v3_namespace_set},
    {"namespace", "get", 3, 3, "", "<name> <server> <field>", v3_namespace_get},
    {"client", "list", 0, 0, "server all format",
     "[--server=NAME] [--all] [--format=table|csv[,noheader]]", v3_client_list},
    {"client", "get", 2, 2, "", "<pid> <field>", v3_client_get},
    {"client", "terminate", 1, 1, "", "<pid>", v3_client_terminate},
    {"device", "list", 0, 0, "server format", "[--server=NAME] [--format=table|csv[,noheader]]",
     v3_device_list},
    {"sm-partition", "create", 1, 1, "server device chunks include-remainder",
     "<name> --server=NAME --device=DEVICE --chunks=N [--include-remainder=true|false]",
     v3_partition_create},
    {"sm-partition", "delete", 1, 1, "server device", "<name> --server=NAME --device=DEVICE",
     v3_partition_delete},
    {"sm-partition", "list", 0, 0, "server device all format",
     "[--server=NAME] [--device=DEVICE] [--all] [--format=table|csv[,noheader]]",
     v3_partition_list},
    {"feature", "enable", 1, 1, "", "<memacct|context-share>", v3_feature_enable},
    {"feature", "disable", 1, 1, "", "<memacct|context-share>", v3_feature_disable},
    {"feature", "describe", 0, 1, "format",
     "[memacct|context-share] [--format=table|csv[,noheader]]", v3_feature_describe},
    {"memacct", "set", 0, 0, "audit_log", "audit_log=true|false", v3_memacct_set},
    {"memacct", "describe", 0, 0, "format", "[--format=table|csv[,noheader]]", v3_memacct_describe},
};

std::string usage_of(const V3Command& command) {
  return fmt::format("usage: {} {} {}", command.module, command.verb, command.usage);
}

// A text why not.
std::optional<std::string> read_words(const V3Command& command, const Words& words,
                                      V3Arguments* arguments) {
  const std::string known = fmt::format(" {} ", command.keys);
  for (size_t i = 2; i < words.size(); ++i) {
    std::string_view value = words[i];
    const bool has_dashes = value.starts_with("--");
    const bool has_value = value.find('=') != std::string_view::npos;
    if (!has_dashes && !has_value) {
      arguments->positional.push_back(words[i]);
      continue;
    }
    std::string_view key = take_field(&value, '=');
    if (has_dashes) key.remove_prefix(2);
    if (key.empty() || known.find(fmt::format(" {} ", key)) == std::string::npos) {
      return fmt::format("unknown option --{}; {}", key, usage_of(command));
    }
    const bool is_flag = key == "force" || key == "all";
    if (has_value == is_flag) {
      return fmt::format("--{} takes {} value; {}", key, is_flag ? "no" : "a", usage_of(command));
    }
    arguments->keys[std::string(key)] = std::string(value);
  }
  const size_t count = arguments->positional.size();
  if (count < command.min_positional || count > command.max_positional) return usage_of(command);
  return std::nullopt;
}

}  // namespace

std::string fail(Console* console, std::string_view text) {
  console->failed = true;
  return fmt::format("{}\n", text);
}

std::string execute_v3(ControlDaemon& daemon, Console* console, const Words& words) {
  console->failed = false;
  if (words.empty()) return "";
  if (words[0] == "gpusim" && words.size() > 1) return gpusim_command(daemon, console, words);
  if (words[0] == "quit") return quit(daemon, console, words);
  std::string verbs;
  std::string usages;
  for (const V3Command& command : kV3Commands) {
    if (words[0] != command.module) continue;
    verbs += fmt::format("{}{}", verbs.empty() ? "" : ", ", command.verb);
    usages += usage_of(command) + "\n";
    if (words.size() < 2 || words[1] != command.verb) continue;
    if (words.size() == 3 && words[2] == "help") return usage_of(command) + "\n";
    V3Arguments arguments;
    const auto error = read_words(command, words, &arguments);
    return error ? fail(console, *error) : command.action(daemon, console, arguments);
  }
  if (words[0] == "context-share") return fail(console, "no verb of context-share is documented");
  if (words.size() == 2 && words[1] == "help" && !usages.empty()) return usages;
  if (!verbs.empty()) return fail(console, fmt::format("{} takes one of: {}", words[0], verbs));
  return fail(console, fmt::format("unknown module '{}': server, namespace, client, device, "
                                   "sm-partition, feature, memacct or context-share",
                                   words[0]));
}

std::optional<std::string> read_v3_flag(const V3Arguments& arguments, std::string_view key,
                                        bool* flag) {
  if (!arguments.has(key)) return std::nullopt;
  const std::string value = arguments.value(key);
  *flag = value == "true";
  if (value == "true" || value == "false") return std::nullopt;
  return fmt::format("--{} is true or false, not '{}'", key, value);
}

std::string answer_table(Console* console, const V3Arguments& arguments, const Table& table) {
  const std::string format = arguments.value("format");
  if (format == "csv") return show_table(table, TableFormat::kCsv);
  if (format == "csv,noheader") return show_table(table, TableFormat::kCsvWithoutHeader);
  if (!arguments.has("format") || format == "table")
    return show_table(table, TableFormat::kAligned);
  if (format == "table,noheader") return show_table(table, TableFormat::kAlignedWithoutHeader);
  return fail(console,
              fmt::format("--format is table or csv, with ,noheader or without, not '{}'", format));
}

std::string answer_field(Console* console, const V3Fields& fields, const std::string& name) {
  std::string known;
  for (const auto& [field, value] : fields) {
    if (name == field) return fmt::format("{}\n", value);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", field);
  }
  return fail(console, fmt::format("no field '{}': {}", name, known));
}

}  // namespace gpusim::mps
