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
  const bool is_aligned =
      format == TableFormat::kAligned || format == TableFormat::kAlignedWithoutHeader;
  const bool has_header = format == TableFormat::kAligned || format == TableFormat::kCsv;
  for (size_t r = has_header ? 0 : 1; r < table.size(); ++r) {
    for (size_t i = 0; i < table[r].size(); ++i) {
      const bool is_last = i + 1 == table[r].size();
      if (!is_aligned) {
        out += csv_field(table[r][i]) + (is_last ? "" : ",");
        continue;
      }
      std::string text = table[r][i].empty() ? "-" : table[r][i];
      if (r == 0) {
        for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      }
      out += is_last ? text : text + std::string(widths[i] + 2 - text.size(), ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace gpusim::mps
