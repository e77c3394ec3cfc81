// Columns for people: every cell padded to its column's widest, two spaces between.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cotenant::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  // Control characters in a cell become blanks.
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.size() == 1; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "[########........]" of `width` characters between the brackets.
std::string bar(std::int64_t part, std::int64_t whole, int width);

// "0:42", "12:05", "3:07:11": how long ago, or how long it lasted.
std::string duration_text(double seconds);

// The first twelve characters of an id, or of the id at the end of an ARN: enough to tell tasks
// apart.
std::string short_id(const std::string& id_or_arn);

}  // namespace cotenant::cli
