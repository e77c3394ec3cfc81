#include "core/query/query_lexer.h"

#include <fmt/format.h>

#include <algorithm>

namespace cotenant::core {
namespace {

constexpr std::size_t kShownChars = 32;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word_char(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool ends_name(char c) {
  return is_blank(c) || std::string_view("()[],=!<>~&|'\"").find(c) != std::string_view::npos;
}

}  // namespace

void QueryLexer::skip_blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

std::size_t QueryLexer::column() {
  skip_blanks();
  return at_ + 1;
}

bool QueryLexer::at_end() {
  skip_blanks();
  return at_ == text_.size();
}

bool QueryLexer::take(std::string_view token) {
  skip_blanks();
  const std::string_view next = text_.substr(at_, token.size());
  if (!std::equal(next.begin(), next.end(), token.begin(), token.end(),
                  [](char a, char b) { return lower(a) == lower(b); })) {
    return false;
  }
  const std::size_t after = at_ + token.size();
  if (is_letter(token.back()) && after < text_.size() && is_word_char(text_[after])) return false;
  at_ = after;
  return true;
}

QueryWord QueryLexer::name() {
  QueryWord word{.column = column(), .end = at_end()};
  const std::size_t begin = at_;
  while (at_ < text_.size() && !ends_name(text_[at_])) ++at_;
  word.text = std::string(text_.substr(begin, at_ - begin));
  return word;
}

QueryWord QueryLexer::quoted_argument() {
  QueryWord word{.column = at_ + 1, .quoted = true};
  const char quote = text_[at_++];
  while (at_ < text_.size() && text_[at_] != quote) {
    const bool escape = text_[at_] == '\\' && at_ + 1 < text_.size() &&
                        (text_[at_ + 1] == quote || text_[at_ + 1] == '\\');
    if (escape) ++at_;
    word.text += text_[at_++];
  }
  word.end = at_ == text_.size();
  if (!word.end) ++at_;
  return word;
}

QueryWord QueryLexer::argument(bool pattern) {
  QueryWord word{.column = column(), .end = at_end()};
  if (word.end) return word;
  if (text_[at_] == '"' || text_[at_] == '\'') return quoted_argument();
  const std::size_t begin = at_;
  int open = 0;
  for (; at_ < text_.size() && !is_blank(text_[at_]); ++at_) {
    const char c = text_[at_];
    if (pattern && c == '\\' && at_ + 1 < text_.size()) {
      ++at_;
      continue;
    }
    if (pattern && (c == '(' || c == '[' || c == '{')) ++open;
    const bool closes = c == ')' || c == ']' || c == '}';
    if (closes && open == 0 && c != '}') break;
    if (closes && open > 0) --open;
    if (!pattern && (c == ',' || c == '(' || c == '[')) break;
  }
  word.text = std::string(text_.substr(begin, at_ - begin));
  return word;
}

std::string QueryLexer::shown() {
  if (at_end()) return "the end";
  std::size_t end = at_;
  while (end < text_.size() && !is_blank(text_[end]) && end - at_ < kShownChars) ++end;
  return fmt::format("'{}'", text_.substr(at_, end - at_));
}

}  // namespace cotenant::core
