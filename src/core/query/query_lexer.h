// The words of the cluster query language (query.h).
//
// What a word is depends on what is expected: a pattern may hold brackets and commas that end any
// other word. So the parser asks for the kind that it wants next.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cotenant::core {

struct QueryWord {
  std::string text = {};
  std::size_t column = 1;  // of its first byte, from 1
  bool quoted = false;
  bool end = false;  // there is nothing left
};

class QueryLexer {
 public:
  explicit QueryLexer(std::string_view text) : text_(text) {}

  std::size_t column();  // of what comes next, blanks skipped
  bool at_end();

  // Takes `token` when it comes next; a token of letters only where no letter or digit follows it.
  // Letters are compared without regard to case.
  bool take(std::string_view token);

  // A subject or an operator's name: up to a blank, a bracket or a sign of an operator.
  QueryWord name();
  // An argument: quoted, or up to a blank, a comma or a closing bracket. `pattern`: brackets that
  // open within it are part of it up to their closing ones. An unclosed quote gives `end`.
  QueryWord argument(bool pattern);
  // What stands next, for an error text: a word of any kind, shortened.
  std::string shown();

 private:
  void skip_blanks();
  QueryWord quoted_argument();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace cotenant::core
