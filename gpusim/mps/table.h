// Rows of text as an aligned table or as CSV; the first row is the header.
#pragma once

#include <string>
#include <vector>

namespace gpusim::mps {

using Table = std::vector<std::vector<std::string>>;
enum class TableFormat { kAligned, kAlignedWithoutHeader, kCsv, kCsvWithoutHeader };

// Fields with a comma or a quote are quoted in CSV. An aligned table has its header in upper case and
// "-" for empty fields.
std::string show_table(const Table& table, TableFormat format);

}  // namespace gpusim::mps
