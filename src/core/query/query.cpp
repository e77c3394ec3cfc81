#include "core/query/query.h"

#include <algorithm>
#include <compare>

#include "core/query/query_tree.h"
#include "core/query/query_values.h"

namespace cotenant::core {
namespace {

bool holds(QueryOperator op, std::strong_ordering order) {
  switch (op) {
    case QueryOperator::kEquals:
      return order == 0;
    case QueryOperator::kGreater:
      return order > 0;
    case QueryOperator::kGreaterEqual:
      return order >= 0;
    case QueryOperator::kLess:
      return order < 0;
    case QueryOperator::kLessEqual:
      return order <= 0;
    case QueryOperator::kIn:
    case QueryOperator::kMatches:
    case QueryOperator::kExists:
      break;
  }
  return false;
}

bool text_holds(const QueryPredicate& predicate, std::string_view value) {
  switch (predicate.op) {
    case QueryOperator::kExists:
      return true;
    case QueryOperator::kEquals:
      return value == predicate.arguments.front();
    case QueryOperator::kIn:
      return std::find(predicate.arguments.begin(), predicate.arguments.end(), value) !=
             predicate.arguments.end();
    case QueryOperator::kMatches:
      return predicate.pattern->matches(value);
    default:
      return holds(predicate.op, compare_query_texts(value, predicate.arguments.front()));
  }
}

bool attribute_holds(const QueryPredicate& predicate, const QueryFacts& facts) {
  for (const auto* attributes : {facts.custom_attributes, facts.attributes}) {
    if (attributes == nullptr) continue;
    const auto found = attributes->find(predicate.attribute);
    if (found != attributes->end()) return text_holds(predicate, found->second);
  }
  return false;
}

bool group_holds(const QueryPredicate& predicate, const QueryFacts& facts) {
  if (facts.task_groups == nullptr) return false;
  return std::any_of(facts.task_groups->begin(), facts.task_groups->end(),
                     [&](const std::string& group) { return text_holds(predicate, group); });
}

// The positive form.
bool subject_holds(const QueryPredicate& predicate, const QueryFacts& facts) {
  switch (predicate.subject) {
    case QuerySubject::kAttribute:
      return attribute_holds(predicate, facts);
    case QuerySubject::kAgentConnected:
      return text_holds(predicate, facts.agent_connected ? "true" : "false");
    case QuerySubject::kAgentVersion:
      return holds(predicate.op,
                   compare_versions(facts.agent_version, predicate.arguments.front()));
    case QuerySubject::kEc2InstanceId:
      return !facts.ec2_instance_id.empty() && text_holds(predicate, facts.ec2_instance_id);
    case QuerySubject::kRegisteredAt:
      return holds(predicate.op, facts.registered_at_ms <=> *predicate.number);
    case QuerySubject::kRunningTasksCount:
      return holds(predicate.op, facts.running_tasks_count <=> *predicate.number);
    case QuerySubject::kTaskGroup:
      return group_holds(predicate, facts);
  }
  return false;
}

// As deep as the expression is nested, which the parser bounds.
bool node_holds(const std::vector<QueryNode>& nodes, std::size_t at, const QueryFacts& facts) {
  const QueryNode& node = nodes[at];
  switch (node.kind) {
    case QueryNode::Kind::kPredicate:
      return subject_holds(node.predicate, facts) != node.predicate.negated;
    case QueryNode::Kind::kNot:
      return !node_holds(nodes, node.left, facts);
    case QueryNode::Kind::kAnd:
      return node_holds(nodes, node.left, facts) && node_holds(nodes, node.right, facts);
    case QueryNode::Kind::kOr:
      return node_holds(nodes, node.left, facts) || node_holds(nodes, node.right, facts);
  }
  return false;
}

}  // namespace

bool Query::matches(const QueryFacts& facts) const {
  return node_holds(parsed_->nodes, parsed_->root, facts);
}

const std::string& Query::text() const {
  return parsed_->text;
}

bool Query::attributes_only() const {
  return parsed_->attributes_only;
}

}  // namespace cotenant::core
