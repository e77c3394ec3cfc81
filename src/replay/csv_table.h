// A CSV file with a header line, plain or xz-compressed (by its name's end, .xz), or a stream that can be
// read once. Values have no quotes and no commas inside. Only named columns are kept, one behind the other:
// a table takes the bytes of its text and 4 a cell, and no more than kCsvTextBytes and `most_rows` say.
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

inline constexpr std::size_t kCsvTextBytes = std::size_t{256} << 20;

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
  std::string_view text(std::size_t row, std::size_t column) const {
    const std::size_t cell = row * columns_.size() + column;
    const std::size_t begin = cell == 0 ? 0 : ends_[cell - 1];
    return std::string_view(text_).substr(begin, ends_[cell] - begin);
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
  std::string text_;                  // of all cells
  std::vector<std::uint32_t> ends_;   // of each cell in it
  std::vector<std::uint32_t> lines_;  // their numbers in the file
};

}  // namespace cotenant::replay
