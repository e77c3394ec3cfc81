// A parsed expression of the cluster query language (query.h), as query_parser.cpp builds it and
// query.cpp reads it. Private to those two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/query/query.h"
#include "core/query/query_pattern.h"

namespace cotenant::core {

enum class QuerySubject {
  kAttribute,
  kAgentConnected,
  kAgentVersion,
  kEc2InstanceId,
  kRegisteredAt,
  kRunningTasksCount,
  kTaskGroup,
};

// The positive forms; a negative one is the same with Predicate::negated.
enum class QueryOperator {
  kEquals,
  kIn,
  kMatches,
  kExists,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual
};

struct QueryPredicate {
  QuerySubject subject = QuerySubject::kAttribute;
  std::string attribute;  // for kAttribute
  QueryOperator op = QueryOperator::kExists;
  bool negated = false;
  std::vector<std::string> arguments;  // one, or any number for kIn; none for kExists
  std::optional<std::int64_t>
      number;  // the argument as a count or a time, where the subject is one
  std::optional<QueryPattern> pattern;  // for kMatches
};

struct QueryNode {
  enum class Kind { kPredicate, kNot, kAnd, kOr };
  Kind kind = Kind::kPredicate;
  QueryPredicate predicate = {};
  std::size_t left = 0;  // index into the nodes: of kNot's operand too
  std::size_t right = 0;
};

struct Query::Parsed {
  std::string text;
  std::vector<QueryNode> nodes;  // operands stand before what uses them
  std::size_t root = 0;
  bool attributes_only = true;
};

}  // namespace cotenant::core
