// The arguments of an MPS v3 command and the table of its verbs, for the files that carry them out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mps/commands.h"
#include "mps/table.h"

namespace gpusim::mps {

using V3Keys = std::map<std::string, std::string, std::less<>>;

struct V3Arguments {
  std::vector<std::string> positional;
  V3Keys keys;  // "--key=value" or "key=value"; "" without a value
  std::string value(std::string_view key) const {
    const auto found = keys.find(key);
    return found == keys.end() ? std::string() : found->second;
  }
  bool has(std::string_view key) const { return keys.contains(key); }
};

using V3Verb = std::string(ControlDaemon& daemon, Console* console, const V3Arguments& arguments);
V3Verb v3_server_create, v3_server_delete, v3_server_set, v3_server_list, v3_server_get;
V3Verb v3_namespace_create, v3_namespace_delete, v3_namespace_set, v3_namespace_list,
    v3_namespace_get;
V3Verb v3_client_list, v3_client_get, v3_client_terminate, v3_device_list;
V3Verb v3_partition_create, v3_partition_delete, v3_partition_list;
V3Verb v3_feature_enable, v3_feature_disable, v3_feature_describe, v3_memacct_set,
    v3_memacct_describe;

// Marks the answer as an error.
std::string fail(Console* console, std::string_view text);

// "true" or "false". A text why not.
std::optional<std::string> read_v3_flag(const V3Arguments& arguments, std::string_view key,
                                        bool* flag);

// The table as --format asks for it, or the complaint about that.
std::string answer_table(Console* console, const V3Arguments& arguments, const Table& table);

// One value by the name of its field, as `get` prints it.
using V3Fields = std::vector<std::pair<const char*, std::string>>;
std::string answer_field(Console* console, const V3Fields& fields, const std::string& name);

}  // namespace gpusim::mps
