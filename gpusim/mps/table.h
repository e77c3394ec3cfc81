// Rows of text as an aligned table or as CSV; the first row is the header.
#pragma once

#include <string>
#include <vector>

namespace gpusim::mps {

using Table = std::vector<std::vector<std::string>>;
enum class TableFormat { kAligned, kCsv, kCsvWithoutHeader };

// Fields with a comma or a quote are quoted in CSV. Empty fields are "-" in an aligned table.
std::string show_table(const Table& table, TableFormat format);

}  // namespace gpusim::mps
