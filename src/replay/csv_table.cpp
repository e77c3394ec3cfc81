#include "replay/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "replay/line_reader.h"

namespace cotenant::replay {
namespace {

using base::ErrorCode;
using base::fail;

std::vector<std::string_view> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t from = 0;;) {
    const std::size_t comma = line.find(',', from);
    fields.push_back(line.substr(from, comma - from));
    if (comma == std::string_view::npos) return fields;
    from = comma + 1;
  }
}

// For messages: text from a file may be long or not printable.
std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string out;
  for (const char c : text.substr(0, kShown)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > kShown) out += "...";
  return out;
}

}  // namespace

base::Error CsvTable::error(std::size_t row, std::size_t column, std::string_view message) const {
  return {ErrorCode::kInvalidParameter,
          fmt::format("{}: line {}: {}: {}", path_, lines_[row], columns_[column].name, message)};
}

base::Status CsvTable::read_header(std::string_view line) {
  const std::vector<std::string_view> fields = split_fields(line);
  width_ = fields.size();
  has_header_ = true;
  for (const CsvColumn& column : columns_) {
    const auto found = std::find(fields.begin(), fields.end(), column.name);
    if (found == fields.end() && column.required) {
      return fail(ErrorCode::kInvalidParameter,
                  fmt::format("{}: line 1: the column {} is missing; the header is '{}'", path_,
                              column.name, shown(line)));
    }
    positions_.push_back(found == fields.end()
                             ? std::nullopt
                             : std::optional(static_cast<std::size_t>(found - fields.begin())));
  }
  return {};
}

base::Status CsvTable::add_line(std::string_view line, std::size_t number, std::size_t most_rows) {
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (!has_header_) return read_header(line);
  if (line.empty()) return {};
  const auto refuse = [&](const std::string& message) {
    return fail(ErrorCode::kInvalidParameter,
                fmt::format("{}: line {}: {}", path_, number, message));
  };
  if (lines_.size() == most_rows) {
    return refuse(
        fmt::format("there are more than {} rows, the most that a replay takes", most_rows));
  }
  if (line.find('"') != std::string_view::npos)
    return refuse("quotes are not read; leave them out");
  const std::vector<std::string_view> fields = split_fields(line);
  if (fields.size() != width_) {
    return refuse(fmt::format("has {} fields, the header has {}", fields.size(), width_));
  }
  for (const std::optional<std::size_t>& position : positions_) {
    if (position) text_ += fields[*position];
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  if (text_.size() > kCsvTextBytes) {
    return refuse(
        fmt::format("so far there are more than {} bytes of text in the columns that "
                    "count, the most that are taken",
                    kCsvTextBytes));
  }
  lines_.push_back(static_cast<std::uint32_t>(number));
  return {};
}

base::Result<CsvTable> CsvTable::read(const std::string& path,
                                      const std::vector<CsvColumn>& columns,
                                      std::size_t most_rows) {
  CsvTable table;
  table.path_ = path;
  table.columns_ = columns;
  const base::Status status = read_lines(path, [&](std::string_view line, std::size_t number) {
    return table.add_line(line, number, most_rows);
  });
  if (!status) return fail(status.error());
  if (table.rows() == 0) {
    return fail(
        ErrorCode::kInvalidParameter,
        fmt::format("{}: has no rows; a header line and at least one row are needed", path));
  }
  return table;
}

base::Result<std::int64_t> CsvTable::number(std::size_t row, std::size_t column, std::int64_t least,
                                            std::int64_t most) const {
  const std::string_view cell = text(row, column);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (code != std::errc() || end != cell.data() + cell.size() || value < least || value > most) {
    return fail(
        error(row, column,
              fmt::format("'{}' is no whole number from {} to {}", shown(cell), least, most)));
  }
  return value;
}

}  // namespace cotenant::replay
