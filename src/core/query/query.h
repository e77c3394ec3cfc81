// The cluster query language: which container instances an expression selects.
//
//   subject operator [argument]       joined by and (&&), or (||), not (!) and brackets
//
// Subjects, operators and the operators that a subject takes: ECS developer guide, "Create
// expressions to define container instances for Amazon ECS tasks". Used by the constraint memberOf
// and by the filter of ListContainerInstances.
//
// What ECS leaves open, and we decide:
//  * A subject that is not there (no such attribute, no EC2 instance id) fulfils !exists, !=, !in
//    and !~, and nothing else: each is the exact opposite of its positive form.
//  * `attribute:a > b` compares as numbers where both sides are integers, else as text.
//  * `task:group == g` holds where a task of the group g has a place on the instance; an instance
//    with several groups fulfils it by any of them.
//  * An argument may stand in single or double quotes, with \ before a quote or a backslash.
//
// A Query is immutable and may be read by several threads; a copy is cheap.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace cotenant::core {

// What an expression can ask of one instance. Points to what its maker owns.
struct QueryFacts {
  // A name is looked for in the first map, then in the second. Null: none.
  const std::map<std::string, std::string>* custom_attributes = nullptr;
  const std::map<std::string, std::string>* attributes = nullptr;
  bool agent_connected = false;
  std::string_view agent_version = {};
  std::string_view ec2_instance_id = {};  // empty: none, as on every machine outside EC2
  base::TimeMs registered_at_ms = 0;
  std::int64_t running_tasks_count = 0;
  const std::set<std::string>* task_groups = nullptr;  // null: none
};

class Query {
 public:
  // Takes time and memory in proportion to the text (at most limits::kQueryChars bytes, nested at
  // most limits::kQueryDepth deep). Errors: kInvalidParameter, with the column (from 1) at which the
  // expression stops making sense and what would be right there.
  static base::Result<Query> parse(std::string_view text);

  bool matches(const QueryFacts& facts) const;

  const std::string& text() const;
  // True where the answer depends on the attributes alone, and so is the same for all instances that
  // have the same ones.
  bool attributes_only() const;

  friend bool operator==(const Query& a, const Query& b) { return a.text() == b.text(); }

 private:
  struct Parsed;
  friend class QueryParser;
  explicit Query(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace cotenant::core
