// The arguments of an MPS v3 command, for the files that carry the verbs out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mps/control_daemon.h"
#include "mps/table.h"

namespace gpusim::mps {

using V3Keys = std::map<std::string, std::string, std::less<>>;

struct ControlDaemon::V3Arguments {
  std::vector<std::string> positional;
  V3Keys keys;  // "--key=value"; "" without a value
  std::string value(std::string_view key) const {
    const auto found = keys.find(key);
    return found == keys.end() ? std::string() : found->second;
  }
  bool has(std::string_view key) const { return keys.contains(key); }
};

// Complains about --format. A text why not.
std::optional<std::string> read_v3_format(const std::string& text, TableFormat* format);

}  // namespace gpusim::mps
