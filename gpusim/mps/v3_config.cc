// The TOML file of -a. The only file that includes toml++, which is slow to compile.
#define TOML_HEADER_ONLY 1
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/text.h"
#include "mps/v3_spec.h"

namespace gpusim::mps {
namespace {

constexpr uintmax_t kMaxFileBytes = 1024 * 1024;

struct Refusal {
  std::string text;
};

// Reads one table; every key must be taken, what is left is an error.
class Reader {
 public:
  Reader(const toml::table& table, std::string path) : table_(table), path_(std::move(path)) {}

  std::optional<std::string> text(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value_exact<std::string>();
    if (!value) throw Refusal{fmt::format("{} is a string", name(key))};
    return *value;
  }
  std::optional<int64_t> number(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value_exact<int64_t>();
    if (!value) throw Refusal{fmt::format("{} is a whole number", name(key))};
    return *value;
  }
  std::optional<bool> flag(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->value_exact<bool>();
    if (!value) throw Refusal{fmt::format("{} is true or false", name(key))};
    return *value;
  }
  const toml::table* table(std::string_view key) {
    const toml::node* node = take(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) throw Refusal{fmt::format("{} is a table", name(key))};
    return node->as_table();
  }
  std::vector<const toml::table*> tables(std::string_view key) {
    std::vector<const toml::table*> out;
    const toml::node* node = take(key);
    if (node == nullptr) return out;
    if (!node->is_array()) throw Refusal{fmt::format("{} is an array of tables", name(key))};
    for (const toml::node& entry : *node->as_array()) {
      if (!entry.is_table()) throw Refusal{fmt::format("{} is an array of tables", name(key))};
      out.push_back(entry.as_table());
    }
    return out;
  }
  void nothing_else() const {
    for (const auto& [key, value] : table_) {
      const std::string_view text(key.str());
      if (std::find(taken_.begin(), taken_.end(), text) == taken_.end()) {
        throw Refusal{fmt::format("{} is not known", name(text))};
      }
    }
  }
  std::string name(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  const toml::table& all() const { return table_; }

 private:
  const toml::node* take(std::string_view key) {
    taken_.emplace_back(key);
    return table_.get(key);
  }
  const toml::table& table_;
  std::string path_;
  std::vector<std::string> taken_;
};

void require(const std::optional<std::string>& error, const std::string& name) {
  if (error) throw Refusal{fmt::format("{}: {}", name, *error)};
}

// The three values that servers and namespaces have in common.
void read_defaults(Reader* reader, ClientDefaults* defaults, bool* has_percentage) {
  if (const auto value = reader->text("pinned_memory_limit")) {
    require(set_v3_limit(*value, defaults), reader->name("pinned_memory_limit"));
  }
  if (const auto value = reader->text("active_thread_percentage")) {
    require(set_v3_percentage(*value, defaults), reader->name("active_thread_percentage"));
    *has_percentage = true;
  }
  if (const auto value = reader->text("client_priority")) {
    require(set_v3_priority(*value, defaults), reader->name("client_priority"));
  }
}

void check_name(const std::string& name, const std::string& path) {
  if (is_v3_name(name)) return;
  throw Refusal{
      fmt::format("{}: a name is of lower case, digits and underscore, at most 64", path)};
}

void read_namespaces(const toml::table& table, const std::string& path, ServerSpec* server) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (!value.is_table()) throw Refusal{fmt::format("{}.{} is a table", path, name)};
    Reader reader(*value.as_table(), fmt::format("{}.{}", path, name));
    check_name(name, fmt::format("{}.{}", path, name));
    bool has_percentage = false;
    if (name == kDefaultNamespace) {
      read_defaults(&reader, &server->defaults, &has_percentage);
    } else {
      NamespaceSpec& space = server->namespaces.emplace_back();
      space.name = name;
      read_defaults(&reader, &space.defaults, &space.has_percentage);
    }
    reader.nothing_else();
  }
}

void read_devices(Reader* reader, ServerSpec* server) {
  constexpr int64_t kMaxChunks = 4096;
  for (const toml::table* device : reader->tables("devices")) {
    Reader row(*device, reader->name("devices"));
    const auto uuid = row.text("uuid");
    if (!uuid) throw Refusal{fmt::format("{} is missing", row.name("uuid"))};
    require(check_v3_devices(*uuid), row.name("uuid"));
    for (const toml::table* partition : row.tables("sm_partitions")) {
      Reader part(*partition, row.name("sm_partitions"));
      const auto name = part.text("name");
      if (!name) throw Refusal{fmt::format("{} is missing", part.name("name"))};
      check_name(*name, part.name("name"));
      for (const PartitionSpec& other : server->partitions) {
        if (other.name == *name && other.gpu == *uuid) {
          throw Refusal{fmt::format("{}: '{}' is there twice", part.name("name"), *name)};
        }
      }
      const int64_t chunks = part.number("chunks").value_or(0);
      if (chunks < 1 || chunks > kMaxChunks) {
        throw Refusal{
            fmt::format("{} is a whole number from 1 to {}", part.name("chunks"), kMaxChunks)};
      }
      server->partitions.push_back({*name, *uuid, static_cast<uint32_t>(chunks),
                                    part.flag("include_remainder").value_or(false)});
      part.nothing_else();
    }
    row.nothing_else();
  }
  if (server->locality_domains && !server->partitions.empty()) {
    throw Refusal{
        fmt::format("{} and SM partitions exclude each other", reader->name("locality_domains"))};
  }
}

void read_server(const std::string& name, const toml::table& table, V3Config* config) {
  const std::string path = "servers." + name;
  check_name(name, path);
  Reader reader(table, path);
  ServerSpec server;
  server.name = name;
  if (const auto value = reader.text("allowed_devices")) {
    require(check_v3_devices(*value), reader.name("allowed_devices"));
    server.allowed_devices = *value;
  }
  if (const auto value = reader.number("uid")) {
    if (*value < 0 || *value > UINT32_MAX) {
      throw Refusal{fmt::format("{} is a user id", reader.name("uid"))};
    }
    server.uid = static_cast<uint32_t>(*value);
  }
  bool has_percentage = false;
  read_defaults(&reader, &server.defaults, &has_percentage);
  server.locality_domains = reader.flag("locality_domains").value_or(false);
  if (server.locality_domains) {
    config->notes.push_back(reader.name("locality_domains") + ": not imitated");
  }
  if (const toml::table* spaces = reader.table("namespaces")) {
    read_namespaces(*spaces, reader.name("namespaces"), &server);
  }
  read_devices(&reader, &server);
  reader.nothing_else();
  config->servers.push_back(std::move(server));
}

void read_features(const toml::table& table, V3Config* config) {
  Reader features(table, "features");
  if (const toml::table* memacct = features.table("memacct")) {
    Reader reader(*memacct, "features.memacct");
    config->features.memacct = reader.flag("enabled").value_or(true);
    config->features.audit_log = reader.flag("audit_log").value_or(false);
    if (config->features.audit_log) {
      config->notes.push_back("features.memacct.audit_log: shown, not imitated");
    }
    reader.nothing_else();
  }
  if (const toml::table* share = features.table("context-share")) {
    Reader reader(*share, "features.context-share");
    config->features.context_share = reader.flag("enabled").value_or(true);
    reader.text("default_socket");
    reader.nothing_else();
  }
  features.nothing_else();
}

V3Config read_root(const toml::table& table) {
  V3Config config;
  Reader root(table, "");
  const auto version = root.text("schema_version");
  if (!version || *version != "1.0") throw Refusal{"schema_version is \"1.0\""};
  if (const toml::table* servers = root.table("servers")) {
    for (const auto& [key, value] : *servers) {
      const std::string name(key.str());
      if (!value.is_table()) throw Refusal{fmt::format("servers.{} is a table", name)};
      read_server(name, *value.as_table(), &config);
    }
  }
  if (const toml::table* features = root.table("features")) read_features(*features, &config);
  root.nothing_else();
  return config;
}

}  // namespace

std::variant<V3Config, std::string> read_v3_config(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return path + ": there is no such file";
  if (std::filesystem::file_size(path, code) > kMaxFileBytes || code) {
    return fmt::format("{}: at most {} bytes are read", path, kMaxFileBytes);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return fmt::format("{}: it cannot be read", path);
  return read_v3_config_text(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

std::variant<V3Config, std::string> read_v3_config_text(std::string_view text,
                                                        const std::string& path) {
  try {
    return read_root(toml::parse(text));
  } catch (const Refusal& refusal) {
    return fmt::format("{}: {}", path, refusal.text);
  } catch (const toml::parse_error& error) {
    return fmt::format("{}: line {}: {}", path, error.source().begin.line, error.description());
  }
}

}  // namespace gpusim::mps
