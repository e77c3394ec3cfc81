#include "mps/table.h"

#include <algorithm>

namespace gpusim::mps {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

std::string show_table(const Table& table, TableFormat format) {
  std::vector<size_t> widths;
  for (const auto& row : table) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (size_t r = format == TableFormat::kCsvWithoutHeader ? 1 : 0; r < table.size(); ++r) {
    for (size_t i = 0; i < table[r].size(); ++i) {
      const bool is_last = i + 1 == table[r].size();
      if (format != TableFormat::kAligned) {
        out += csv_field(table[r][i]) + (is_last ? "" : ",");
        continue;
      }
      const std::string text = table[r][i].empty() ? "-" : table[r][i];
      out += is_last ? text : text + std::string(widths[i] + 2 - text.size(), ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace gpusim::mps
