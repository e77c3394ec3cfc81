// A CSV file with a header line, plain or xz-compressed (by its name's end, .xz). Values have no quotes
// and no commas inside. Only named columns are kept.
//
// Errors (kInvalidParameter) name the file, the line and the column, and say what would be right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cotenant::replay {

struct CsvColumn {
  std::string_view name;
  bool required = true;
};

class CsvTable {
 public:
  // At most `most_rows` rows; a longer file is refused.
  static base::Result<CsvTable> read(const std::string& path, const std::vector<CsvColumn>& columns,
                                     std::size_t most_rows);

  std::size_t rows() const { return lines_.size(); }
  // "" for a column that the file does not have.
  const std::string& text(std::size_t row, std::size_t column) const {
    return cells_[row * columns_.size() + column];
  }
  // A whole number between the bounds.
  base::Result<std::int64_t> number(std::size_t row, std::size_t column, std::int64_t least,
                                    std::int64_t most) const;
  // "FILE: line N: COLUMN: message"
  base::Error error(std::size_t row, std::size_t column, std::string_view message) const;

 private:
  base::Status add_line(std::string_view line, std::size_t number, std::size_t most_rows);
  base::Status read_header(std::string_view line);

  std::string path_;
  std::vector<CsvColumn> columns_;
  std::vector<std::optional<std::size_t>> positions_;  // of each column in a line
  std::size_t width_ = 0;                              // fields of the header
  bool has_header_ = false;
  std::vector<std::string> cells_;
  std::vector<std::size_t> lines_;  // their numbers in the file
};

}  // namespace cotenant::replay
