#include "core/placement/placement_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/assert.h"

namespace cotenant::core {
namespace {

bool is_to_run(const Task& task) {
  return task.desired_status == DesiredStatus::kRunning;
}

PackField pack_field(const std::string& field) {
  if (field == "cpu") return PackField::kCpu;
  if (field == "memory") return PackField::kMemory;
  return PackField::kGpuMemory;
}

}  // namespace

std::string_view to_string(StrategyType type) {
  switch (type) {
    case StrategyType::kBinpack:
      return "binpack";
    case StrategyType::kSpread:
      return "spread";
    case StrategyType::kRandom:
      return "random";
  }
  return "";
}

InstanceFacts::InstanceFacts(const State& state, const Instance& instance, const Query& asked) {
  facts_ = {.custom_attributes = &instance.custom_attributes,
            .attributes = &instance.registration.attributes,
            .agent_connected = instance.agent_connected,
            .agent_version = instance.registration.agent_version,
            .ec2_instance_id = {},
            .registered_at_ms = instance.registered_at_ms,
            .running_tasks_count = 0,
            .task_groups = &groups_};
  if (asked.attributes_only()) return;
  for (const std::string& task_id : instance.task_ids) {
    const Task& task = state.tasks.at(task_id);
    if (is_to_run(task)) groups_.insert(task.group);
  }
  facts_.running_tasks_count = count_tasks(state, instance).running;
}

// The cluster's instances by their slot in the fleet, and how many tasks of the group each has. Looked
// up when they are asked for: most decisions ask about a few instances.
struct PlacementPlan::Cluster {
  const State* state;
  const ClusterPlacement* placement = nullptr;  // null: the cluster has no instances
  std::string group;
  std::vector<std::int64_t> group_tasks;  // by slot; kUnknown: not asked for yet
  // For each spread over an attribute: the group's tasks by the attribute's value. An instance without
  // the attribute counts among those with an empty one.
  std::map<std::string, std::map<std::string, std::int64_t>> by_value;

  static constexpr std::int64_t kUnknown = -1;

  Cluster(const State& of, const std::string& cluster, std::string of_group)
      : state(&of), group(std::move(of_group)) {
    const auto found = of.placements.find(cluster);
    if (found == of.placements.end()) return;
    placement = &found->second;
    group_tasks.resize(placement->fleet.size(), kUnknown);
  }

  // Null: the slot's instance is gone.
  const Instance* instance(NodeSlot slot) const {
    if (!placement->fleet.node(slot).present) return nullptr;
    return &state->instances.at(placement->instance_ids[slot]);
  }
  std::int64_t& tasks(NodeSlot slot) {
    std::int64_t& tasks = group_tasks[slot];
    if (tasks != kUnknown) return tasks;
    tasks = 0;
    if (const Instance* on = instance(slot)) {
      tasks = std::count_if(on->task_ids.begin(), on->task_ids.end(), [&](const auto& task_id) {
        const Task& task = state->tasks.at(task_id);
        return task.group == group && is_to_run(task);
      });
    }
    return tasks;
  }
  static const std::string& value_of(const Instance& instance, const std::string& attribute) {
    static const std::string kNone;
    const std::string* value = instance.find_attribute(attribute);
    return value == nullptr ? kNone : *value;
  }
  void count_by_value(const std::string& attribute);
};

void PlacementPlan::Cluster::count_by_value(const std::string& attribute) {
  auto& counts = by_value[attribute];
  for (NodeSlot slot = 0; slot < group_tasks.size(); ++slot) {
    const Instance* on = instance(slot);
    if (on != nullptr && tasks(slot) > 0) counts[value_of(*on, attribute)] += tasks(slot);
  }
}

PlacementPlan PlacementPlan::make(const State& state, const std::string& cluster,
                                  const TaskNeed& need,
                                  const std::vector<Query>& definition_member_of,
                                  const PlacementRules& rules, const std::string& group) {
  PlacementPlan plan;
  plan.query_.need = need;
  std::vector<Query> member_of = definition_member_of;
  member_of.insert(member_of.end(), rules.member_of.begin(), rules.member_of.end());
  const bool spreads = std::any_of(
      rules.strategies.begin(), rules.strategies.end(),
      [](const PlacementStrategy& strategy) { return strategy.type == StrategyType::kSpread; });
  if (rules.distinct_instance || spreads || !member_of.empty()) {
    plan.cluster_ = std::make_shared<Cluster>(state, cluster, group);
  }
  const std::shared_ptr<Cluster> known = plan.cluster_;

  if (rules.distinct_instance) {
    plan.query_.constraints.push_back({std::string(kDistinctUnsatisfied),
                                       [known](NodeSlot slot) { return known->tasks(slot) == 0; },
                                       "distinctInstance"});
  }
  for (Query& query : member_of) {
    const bool attributes_only = query.attributes_only();
    std::string text = "memberOf " + query.text();
    plan.query_.constraints.push_back(
        {std::string(kMemberOfUnsatisfied),
         [known, query = std::move(query)](NodeSlot slot) {
           const Instance* instance = known->instance(slot);
           return instance != nullptr &&
                  query.matches(InstanceFacts(*known->state, *instance, query).facts());
         },
         std::move(text), attributes_only});
  }
  for (const PlacementStrategy& strategy : rules.strategies) {
    if (strategy.type == StrategyType::kRandom) {
      plan.stages_.push_back(RankStage::random());
    } else if (strategy.type == StrategyType::kBinpack) {
      if (strategy.field.starts_with(kPolicyField)) {
        plan.policy_ = strategy.field.substr(kPolicyField.size());
        continue;
      }
      plan.stages_.push_back(RankStage::binpack(pack_field(strategy.field)));
    } else if (!strategy.field.starts_with(kAttributeField)) {
      plan.stages_.push_back(
          RankStage::spread([known](NodeSlot slot) { return known->tasks(slot); }));
    } else {
      const std::string attribute = strategy.field.substr(kAttributeField.size());
      known->count_by_value(attribute);
      plan.stages_.push_back(RankStage::spread([known, attribute](NodeSlot slot) {
        const auto& counts = known->by_value.at(attribute);
        const auto found = counts.find(Cluster::value_of(*known->instance(slot), attribute));
        return found == counts.end() ? 0 : found->second;
      }));
    }
  }
  return plan;
}

void PlacementPlan::note_placed(NodeSlot slot) {
  if (cluster_ == nullptr) return;
  ++cluster_->tasks(slot);
  for (auto& [attribute, counts] : cluster_->by_value) {
    ++counts[Cluster::value_of(*cluster_->instance(slot), attribute)];
  }
}

}  // namespace cotenant::core
