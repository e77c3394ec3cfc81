// MPS v3 (driver 615 and newer): what a server and its namespaces are told to be, and the TOML file
// that tells it (NVIDIA's MPS documentation: v3 interface, namespaces, configuration file).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mps/client_defaults.h"
#include "mps/partitions.h"

namespace gpusim::mps {

inline constexpr char kDefaultNamespace[] = "default";
// The key of a limit that holds for each device of a server: v3 values carry no device.
inline constexpr char kEachDevice[] = "*";

struct NamespaceSpec {
  std::string name;
  ClientDefaults defaults;
  // A percentage of the namespace overrides the client's own, which v2 only lets narrow.
  bool has_percentage = false;
};

struct ServerSpec {
  std::string name;
  std::optional<uint32_t> uid;  // the daemon's own, if absent
  std::string allowed_devices;  // UUIDs or ordinals between commas; "" = all that the daemon sees
  bool locality_domains = false;
  // Of the default namespace only; a named one without limits has the whole GPU.
  ClientDefaults defaults;
  std::vector<NamespaceSpec> namespaces;
  std::vector<PartitionSpec> partitions;
};

// What can be switched at the daemon. Beyond their being shown, nothing of them is imitated.
struct Features {
  bool memacct = true;
  bool context_share = true;
  bool audit_log = false;
};

// Lower case, digits and underscore, at most 64.
bool is_v3_name(std::string_view name);

// "10G", "1024K" or "0=1G,GPU-...=2G". A text why not.
std::optional<std::string> set_v3_limit(std::string_view value, ClientDefaults* defaults);
std::optional<std::string> set_v3_percentage(std::string_view value, ClientDefaults* defaults);
std::optional<std::string> set_v3_priority(std::string_view value, ClientDefaults* defaults);
// "GPU-...,GPU-..." (unique prefixes will do) or "0,1".
std::optional<std::string> check_v3_devices(std::string_view value);

// What a limit of a server or namespace reads back as: "10G", "0=1G,1=2G" or "-".
std::string show_v3_limit(const ClientDefaults& defaults);

struct V3Config {
  std::vector<ServerSpec> servers;
  Features features;
  std::vector<std::string> notes;  // what is accepted and not imitated, for control.log
};

// Any unknown key is an error, as the documentation says. Errors name file, key and what would be
// right.
std::variant<V3Config, std::string> read_v3_config(const std::string& path);
// `path` is for errors only.
std::variant<V3Config, std::string> read_v3_config_text(std::string_view text,
                                                        const std::string& path);

}  // namespace gpusim::mps
