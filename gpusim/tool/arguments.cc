#include "tool/arguments.h"

#include <fmt/format.h>

#include "common/text.h"

namespace gpusim {

std::optional<std::string> Arguments::parse(const std::vector<std::string>& words,
                                            std::string_view options) {
  const std::string_view with_value = take_field(&options, '|');
  const std::string_view switches = options;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i];
    if (!name.starts_with('-') || name.size() < 2) {
      words_.push_back(name);
      continue;
    }
    std::optional<std::string> value;
    if (const size_t equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (with_value.find(name + " ") != std::string_view::npos) {
      if (!value && i + 1 >= words.size()) return fmt::format("{} needs a value", name);
      values_[name] = value ? *value : words[++i];
    } else if (switches.find(name + " ") != std::string_view::npos && !value) {
      values_[name] = "";
    } else {
      return fmt::format("unknown option '{}'", words[i]);
    }
  }
  return std::nullopt;
}

std::string Arguments::value(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

bool Arguments::number(const std::string& name, uint64_t lowest, uint64_t highest,
                       uint64_t otherwise, uint64_t* value, std::string* error) const {
  *value = otherwise;
  const auto found = values_.find(name);
  if (found == values_.end()) return true;
  if (parse_number(found->second, value) && *value >= lowest && *value <= highest) return true;
  *error = fmt::format("{} '{}' is not a whole number from {} to {}", name, found->second, lowest,
                       highest);
  return false;
}

}  // namespace gpusim
