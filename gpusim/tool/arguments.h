// The command line of one verb of `gpusim`: options with values, switches, words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusim {

class Arguments {
 public:
  // `options`: the names that take a value and, behind a '|', the switches, each followed by a
  // blank: "--gpu --pid |--new-uuid ". A text why not, if so.
  std::optional<std::string> parse(const std::vector<std::string>& words, std::string_view options);

  bool has(const std::string& name) const { return values_.contains(name); }
  std::string value(const std::string& name) const;
  const std::vector<std::string>& words() const { return words_; }

  // A whole number. Not given: `otherwise`. False and *error when it is none.
  bool number(const std::string& name, uint64_t lowest, uint64_t highest, uint64_t otherwise,
              uint64_t* value, std::string* error) const;

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> words_;
};

}  // namespace gpusim
