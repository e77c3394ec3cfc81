#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace cotenant::cli {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no column.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// A tenant's text must not reach the terminal as commands, nor break the row.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) < 0x20) || c == 0x7f; }, ' ');
  return text;
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(std::move(cell));
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - width_of(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string bar(std::int64_t part, std::int64_t whole, int width) {
  const std::int64_t clamped = std::clamp<std::int64_t>(part, 0, std::max<std::int64_t>(whole, 0));
  const auto filled =
      whole <= 0 ? 0 : static_cast<std::size_t>((clamped * width + whole / 2) / whole);
  return fmt::format("[{}{}]", std::string(filled, '#'),
                     std::string(static_cast<std::size_t>(width) - filled, '.'));
}

std::string duration_text(double seconds) {
  const auto total = static_cast<std::int64_t>(std::max(seconds, 0.0));
  const std::int64_t hours = total / 3600;
  const std::int64_t minutes = total / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60);
  return fmt::format("{}:{:02}", minutes, total % 60);
}

std::string short_id(const std::string& id_or_arn) {
  return id_or_arn.substr(id_or_arn.rfind('/') + 1).substr(0, 12);
}

}  // namespace cotenant::cli
