#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "core/query/query.h"
#include "core/query/query_lexer.h"
#include "core/query/query_tree.h"
#include "core/query/query_values.h"

namespace cotenant::core {
namespace {

struct OperatorSpelling {
  std::string_view sign;
  QueryOperator op;
  bool negated;
};

// A longer spelling stands before one that it begins with.
constexpr std::array<OperatorSpelling, 22> kOperators = {{
    {"==", QueryOperator::kEquals, false},
    {"equals", QueryOperator::kEquals, false},
    {"!=", QueryOperator::kEquals, true},
    {"not_equals", QueryOperator::kEquals, true},
    {">=", QueryOperator::kGreaterEqual, false},
    {"greater_than_equal", QueryOperator::kGreaterEqual, false},
    {">", QueryOperator::kGreater, false},
    {"greater_than", QueryOperator::kGreater, false},
    {"<=", QueryOperator::kLessEqual, false},
    {"less_than_equal", QueryOperator::kLessEqual, false},
    {"<", QueryOperator::kLess, false},
    {"less_than", QueryOperator::kLess, false},
    {"exists", QueryOperator::kExists, false},
    {"!exists", QueryOperator::kExists, true},
    {"not_exists", QueryOperator::kExists, true},
    {"in", QueryOperator::kIn, false},
    {"!in", QueryOperator::kIn, true},
    {"not_in", QueryOperator::kIn, true},
    {"=~", QueryOperator::kMatches, false},
    {"matches", QueryOperator::kMatches, false},
    {"!~", QueryOperator::kMatches, true},
    {"not_matches", QueryOperator::kMatches, true},
}};

// The operators of a subject (ECS developer guide), as bits.
constexpr unsigned bit(QueryOperator op) {
  return 1U << static_cast<unsigned>(op);
}
constexpr unsigned kOrder = bit(QueryOperator::kEquals) | bit(QueryOperator::kGreater) |
                            bit(QueryOperator::kGreaterEqual) | bit(QueryOperator::kLess) |
                            bit(QueryOperator::kLessEqual);
constexpr unsigned kText =
    bit(QueryOperator::kEquals) | bit(QueryOperator::kIn) | bit(QueryOperator::kMatches);
constexpr unsigned kThere = bit(QueryOperator::kExists);

struct SubjectRow {
  std::string_view name;
  QuerySubject subject;
  unsigned operators;
  std::string_view operators_text;
};

constexpr std::string_view kOrderText = "==, !=, >, >=, <, <=";
constexpr std::string_view kTextText = "==, !=, in, !in, =~, !~";

constexpr std::array<SubjectRow, 7> kSubjects = {{
    {"attribute:", QuerySubject::kAttribute, kOrder | kText | kThere,
     "==, !=, >, >=, <, <=, in, !in, =~, !~, exists, !exists"},
    {"agentConnected", QuerySubject::kAgentConnected, kText, kTextText},
    {"agentVersion", QuerySubject::kAgentVersion, kOrder, kOrderText},
    {"ec2InstanceId", QuerySubject::kEc2InstanceId, kText, kTextText},
    {"registeredAt", QuerySubject::kRegisteredAt, kOrder, kOrderText},
    {"runningTasksCount", QuerySubject::kRunningTasksCount, kOrder, kOrderText},
    {"task:group", QuerySubject::kTaskGroup, kText, kTextText},
}};

}  // namespace

// Recursive descent; every function gives the index of the node that it made. After an error they
// unwind without looking further.
class QueryParser {
 public:
  explicit QueryParser(std::string_view text) : lexer_(text) { parsed_.text = std::string(text); }

  base::Result<Query> parse() {
    const std::optional<std::size_t> root = disjunction();
    if (root && !lexer_.at_end()) {
      expected("'and', 'or' or the end of the expression");
    }
    if (error_) return base::fail(std::move(*error_));
    parsed_.root = *root;
    return Query(std::make_shared<const Query::Parsed>(std::move(parsed_)));
  }

 private:
  using Node = std::optional<std::size_t>;

  Node fail_at(std::size_t column, std::string_view what) {
    if (!error_) {
      error_ = base::Error{base::ErrorCode::kInvalidParameter,
                           fmt::format("column {}: {}", column, what)};
    }
    return std::nullopt;
  }

  Node expected(std::string_view what) {
    const std::size_t column = lexer_.column();
    return fail_at(column, fmt::format("expected {}, found {}", what, lexer_.shown()));
  }

  std::size_t add(QueryNode node) {
    parsed_.nodes.push_back(std::move(node));
    return parsed_.nodes.size() - 1;
  }

  Node disjunction() {
    Node left = conjunction();
    while (left && (lexer_.take("or") || lexer_.take("||"))) {
      const Node right = conjunction();
      if (!right) return std::nullopt;
      left = add({.kind = QueryNode::Kind::kOr, .left = *left, .right = *right});
    }
    return left;
  }

  Node conjunction() {
    Node left = operand();
    while (left && (lexer_.take("and") || lexer_.take("&&"))) {
      const Node right = operand();
      if (!right) return std::nullopt;
      left = add({.kind = QueryNode::Kind::kAnd, .left = *left, .right = *right});
    }
    return left;
  }

  Node operand() {
    const std::size_t column = lexer_.column();
    if (++depth_ > base::limits::kQueryDepth) {
      return fail_at(column,
                     fmt::format("nested deeper than {} levels", base::limits::kQueryDepth));
    }
    const Node node = lexer_.take("(")                         ? bracketed()
                      : lexer_.take("not") || lexer_.take("!") ? negation()
                                                               : predicate();
    --depth_;
    return node;
  }

  Node bracketed() {
    const Node inside = disjunction();
    if (inside && !lexer_.take(")")) return expected("')'");
    return inside;
  }

  Node negation() {
    const Node inside = operand();
    if (!inside) return std::nullopt;
    return add({.kind = QueryNode::Kind::kNot, .left = *inside});
  }

  Node predicate() {
    QueryPredicate predicate;
    const SubjectRow* subject = subject_of(predicate);
    if (subject == nullptr) return std::nullopt;
    const std::size_t column = lexer_.column();
    const OperatorSpelling* spelling = spelled_operator();
    if (spelling == nullptr || (subject->operators & bit(spelling->op)) == 0) {
      const std::string message = fmt::format(
          "expected an operator that {} takes ({}), found {}",
          subject->name == "attribute:" ? "an attribute" : subject->name, subject->operators_text,
          spelling == nullptr ? lexer_.shown() : fmt::format("'{}'", spelling->sign));
      return fail_at(column, message);
    }
    predicate.op = spelling->op;
    predicate.negated = spelling->negated;
    parsed_.attributes_only &= predicate.subject == QuerySubject::kAttribute;
    if (!arguments(predicate)) return std::nullopt;
    return add({.predicate = std::move(predicate)});
  }

  const SubjectRow* subject_of(QueryPredicate& predicate) {
    constexpr std::string_view kWanted =
        "a subject (attribute:<name>, agentConnected, agentVersion, ec2InstanceId, registeredAt, "
        "runningTasksCount or task:group)";
    const std::size_t column = lexer_.column();
    const std::string found = lexer_.shown();
    const QueryWord word = lexer_.name();
    for (const SubjectRow& row : kSubjects) {
      const bool attribute = row.subject == QuerySubject::kAttribute;
      if (attribute ? !word.text.starts_with(row.name) : word.text != row.name) continue;
      predicate.subject = row.subject;
      if (attribute) predicate.attribute = word.text.substr(row.name.size());
      if (attribute && predicate.attribute.empty()) {
        fail_at(column, "expected the attribute's name right after 'attribute:'");
        return nullptr;
      }
      return &row;
    }
    fail_at(column, fmt::format("expected {}, found {}", kWanted, found));
    return nullptr;
  }

  const OperatorSpelling* spelled_operator() {
    for (const OperatorSpelling& spelling : kOperators) {
      if (lexer_.take(spelling.sign)) return &spelling;
    }
    return nullptr;
  }

  bool arguments(QueryPredicate& predicate) {
    if (predicate.op == QueryOperator::kExists) return true;
    if (predicate.op != QueryOperator::kIn) return argument(predicate);
    if (!lexer_.take("[")) {
      expected("a list in square brackets, such as [a, b]");
      return false;
    }
    do {
      if (!argument(predicate)) return false;
    } while (lexer_.take(","));
    if (!lexer_.take("]")) {
      expected("',' or ']'");
      return false;
    }
    return true;
  }

  bool argument(QueryPredicate& predicate) {
    const std::size_t column = lexer_.column();
    const QueryWord word = lexer_.argument(predicate.op == QueryOperator::kMatches);
    if (word.quoted && word.end) {
      fail_at(column, "the quote that opens here is never closed");
      return false;
    }
    if (word.text.empty() && !word.quoted) {
      expected("an argument");
      return false;
    }
    if (!fits_subject(predicate, word, column)) return false;
    predicate.arguments.push_back(word.text);
    return true;
  }

  // Also takes the argument apart where it is not compared as text.
  bool fits_subject(QueryPredicate& predicate, const QueryWord& word, std::size_t column) {
    if (predicate.op == QueryOperator::kMatches) {
      auto pattern = QueryPattern::compile(word.text);
      if (!pattern) {
        fail_at(column, fmt::format("not a regular expression: {}", pattern.error()));
        return false;
      }
      predicate.pattern = std::move(*pattern);
      return true;
    }
    std::string_view wanted;
    switch (predicate.subject) {
      case QuerySubject::kAgentConnected:
        if (word.text != "true" && word.text != "false") wanted = "true or false";
        break;
      case QuerySubject::kAgentVersion:
        if (!is_query_version(word.text)) wanted = "a version such as 1.97.1";
        break;
      case QuerySubject::kRegisteredAt:
        predicate.number = parse_query_time(word.text);
        if (!predicate.number) wanted = "a time such as 2018-06-18T22:28:28Z or 2018-06-18";
        break;
      case QuerySubject::kRunningTasksCount:
        predicate.number = parse_query_integer(word.text);
        if (!predicate.number) wanted = "a whole number";
        break;
      case QuerySubject::kAttribute:
      case QuerySubject::kEc2InstanceId:
      case QuerySubject::kTaskGroup:
        break;
    }
    if (wanted.empty()) return true;
    fail_at(column, fmt::format("expected {}, found '{:.64}'", wanted, word.text));
    return false;
  }

  QueryLexer lexer_;
  Query::Parsed parsed_;
  std::optional<base::Error> error_;
  std::size_t depth_ = 0;
};

base::Result<Query> Query::parse(std::string_view text) {
  if (text.size() > base::limits::kQueryChars) {
    return base::fail(base::ErrorCode::kInvalidParameter,
                      fmt::format("{} characters long; at most {} are taken", text.size(),
                                  base::limits::kQueryChars));
  }
  return QueryParser(text).parse();
}

}  // namespace cotenant::core
