#include "case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

namespace cotenant::test {
namespace {

constexpr std::array<std::string_view, 9> kRequestKeys = {
    "name", "target", "header", "method", "path", "body", "status", "reply", "warning"};
constexpr std::array<std::string_view, 8> kVerbs = {"instance", "refused", "disconnect", "observe",
                                                    "desired",  "time",    "restart",    "store"};
constexpr std::string_view kBlanks = " \t\n";
constexpr std::size_t kExpandedBytes = 4 * 1024 * 1024;

bool is_request_key(std::string_view key) {
  return key == "each" ||
         std::find(kRequestKeys.begin(), kRequestKeys.end(), key) != kRequestKeys.end();
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

base::Error at_line(int line, std::string_view text) {
  return {base::ErrorCode::kClient, fmt::format("line {}: {}", line, text)};
}

bool continues(const std::string& line) {
  return line[0] == ' ' || line[0] == '\t' || line[0] == '}' || line[0] == ']';
}

base::Status add_line(CaseLine line, std::vector<CaseStep>& steps) {
  const bool verb = std::find(kVerbs.begin(), kVerbs.end(), line.key) != kVerbs.end();
  if (!verb && !is_request_key(line.key)) {
    return base::fail(at_line(line.line, fmt::format("'{}' is no key of a case", line.key)));
  }
  if (verb || line.key == "name") {
    steps.push_back({!verb, {std::move(line)}});
    return {};
  }
  if (steps.empty() || !steps.back().is_request) {
    return base::fail(at_line(line.line, fmt::format("'{}' needs a 'name' before it", line.key)));
  }
  const bool many = line.key == "header" || line.key == "warning";
  if (!many && steps.back().find(line.key) != nullptr) {
    return base::fail(at_line(line.line, fmt::format("'{}' stands twice in a request", line.key)));
  }
  steps.back().lines.push_back(std::move(line));
  return {};
}

// "(N,text)" behind a macro's name.
struct Macro {
  std::size_t count = 0;
  std::string_view text;
  std::size_t end = 0;  // behind the bracket
};

base::Result<Macro> parse_macro(std::string_view text, std::size_t open) {
  const std::size_t comma = text.find(',', open);
  const std::size_t close = text.find(')', open);
  Macro macro;
  const char* digits_end = text.data() + (comma < close ? comma : open);
  const auto [end, error] = std::from_chars(text.data() + open, digits_end, macro.count);
  if (close == std::string_view::npos || comma > close || error != std::errc() ||
      end != digits_end) {
    return base::fail(base::ErrorCode::kClient, "a macro must be @name(COUNT,text)");
  }
  macro.text = text.substr(comma + 1, close - comma - 1);
  macro.end = close + 1;
  return macro;
}

}  // namespace

const CaseLine* CaseStep::find(const std::string& key) const {
  const auto at = std::find_if(lines.begin(), lines.end(),
                               [&](const CaseLine& line) { return line.key == key; });
  return at == lines.end() ? nullptr : &*at;
}

base::Result<std::vector<CaseStep>> parse_case_file(const std::string& text) {
  std::vector<CaseStep> steps;
  std::istringstream input(text);
  std::string line;
  CaseLine current;
  const auto finish = [&]() -> base::Status {
    if (current.key.empty()) return {};
    // The rows of `each` keep their place below it.
    if (current.key != "each") current.value = std::string(trimmed(current.value));
    auto status = add_line(std::move(current), steps);
    current = {};
    return status;
  };
  for (int number = 1; std::getline(input, line); ++number) {
    if (line.empty() || line[0] == '#') {
      current.value += '\n';
      continue;
    }
    if (continues(line)) {
      if (current.key.empty()) return base::fail(at_line(number, "continues nothing"));
      current.value += '\n' + line;
      continue;
    }
    if (auto status = finish(); !status) return base::fail(status.error());
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) {
      return base::fail(at_line(number, "a line is `key: value`"));
    }
    current = {line.substr(0, colon),
               std::string(trimmed(std::string_view(line).substr(colon + 1))), number};
  }
  if (auto status = finish(); !status) return base::fail(status.error());
  if (steps.empty()) return base::fail(base::ErrorCode::kClient, "the file has no steps");
  return steps;
}

base::Result<std::string> expand_macros(const std::string& text) {
  std::string out;
  std::size_t at = 0;
  const std::string_view view = text;
  while (at < view.size()) {
    const bool repeat = view.substr(at, 8) == "@repeat(";
    const bool list = view.substr(at, 6) == "@list(";
    if (!repeat && !list) {
      out += view[at++];
      continue;
    }
    auto macro = parse_macro(view, at + (repeat ? 8 : 6));
    if (!macro) return base::fail(macro.error());
    for (std::size_t i = 1; i <= macro->count && out.size() < kExpandedBytes; ++i) {
      std::string piece(macro->text);
      if (list) {
        for (std::size_t mark = 0; (mark = piece.find('%', mark)) != std::string::npos;) {
          piece.replace(mark, 1, std::to_string(i));
        }
        if (i > 1) out += ',';
      }
      out += piece;
    }
    at = macro->end;
  }
  return out;
}

std::vector<std::string> split_columns(const std::string& row) {
  constexpr std::string_view kBetween = " | ";
  std::vector<std::string> columns;
  const std::string ended = row + " ";  // so that the last column may be empty
  std::string_view rest = ended;
  for (;;) {
    const std::size_t at = rest.find(kBetween);
    columns.emplace_back(trimmed(rest.substr(0, at)));
    if (at == std::string_view::npos) return columns;
    rest.remove_prefix(at + kBetween.size());
  }
}

}  // namespace cotenant::test
