#include "core/placement_plan.h"

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

InstanceFacts::InstanceFacts(const State& state, const Instance& instance) {
  for (const std::string& task_id : instance.task_ids) {
    const Task& task = state.tasks.at(task_id);
    if (is_to_run(task)) groups_.insert(task.group);
  }
  facts_ = {.custom_attributes = &instance.custom_attributes,
            .attributes = &instance.registration.attributes,
            .agent_connected = instance.agent_connected,
            .agent_version = instance.registration.agent_version,
            .ec2_instance_id = {},
            .registered_at_ms = instance.registered_at_ms,
            .running_tasks_count = count_tasks(state, instance).running,
            .task_groups = &groups_};
}

// The cluster's instances by their slot in the fleet, and how many tasks of the group each has.
struct PlacementPlan::Cluster {
  const State* state;
  std::vector<const Instance*> instances;
  std::vector<std::int64_t> group_tasks;
  // For each spread over an attribute: the group's tasks by the attribute's value. An instance without
  // the attribute counts among those with an empty one.
  std::map<std::string, std::map<std::string, std::int64_t>> by_value;

  Cluster(const State& of, const std::string& cluster, const std::string& group);

  static const std::string& value_of(const Instance& instance, const std::string& attribute) {
    static const std::string kNone;
    const std::string* value = instance.find_attribute(attribute);
    return value == nullptr ? kNone : *value;
  }
  void count_by_value(const std::string& attribute);
};

PlacementPlan::Cluster::Cluster(const State& of, const std::string& cluster,
                                const std::string& group)
    : state(&of) {
  const auto placement = of.placements.find(cluster);
  const std::size_t slots = placement == of.placements.end() ? 0 : placement->second.fleet.size();
  instances.resize(slots, nullptr);
  group_tasks.resize(slots, 0);
  for (const auto& [id, instance] : of.instances) {
    if (instance.registration.cluster != cluster) continue;
    instances[*instance.fleet_slot] = &instance;
    group_tasks[*instance.fleet_slot] = std::count_if(
        instance.task_ids.begin(), instance.task_ids.end(), [&](const std::string& task_id) {
          const Task& task = of.tasks.at(task_id);
          return task.group == group && is_to_run(task);
        });
  }
}

void PlacementPlan::Cluster::count_by_value(const std::string& attribute) {
  auto& counts = by_value[attribute];
  for (std::size_t slot = 0; slot < instances.size(); ++slot) {
    if (instances[slot] == nullptr || group_tasks[slot] == 0) continue;
    counts[value_of(*instances[slot], attribute)] += group_tasks[slot];
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
    plan.query_.constraints.push_back({std::string(kDistinctUnsatisfied), [known](NodeSlot slot) {
                                         return known->group_tasks[slot] == 0;
                                       }});
  }
  for (Query& query : member_of) {
    plan.query_.constraints.push_back(
        {std::string(kMemberOfUnsatisfied), [known, query = std::move(query)](NodeSlot slot) {
           const Instance* instance = known->instances[slot];
           return instance != nullptr &&
                  query.matches(InstanceFacts(*known->state, *instance).facts());
         }});
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
          RankStage::spread([known](NodeSlot slot) { return known->group_tasks[slot]; }));
    } else {
      const std::string attribute = strategy.field.substr(kAttributeField.size());
      known->count_by_value(attribute);
      plan.stages_.push_back(RankStage::spread([known, attribute](NodeSlot slot) {
        const auto& counts = known->by_value.at(attribute);
        const auto found = counts.find(Cluster::value_of(*known->instances[slot], attribute));
        return found == counts.end() ? 0 : found->second;
      }));
    }
  }
  return plan;
}

void PlacementPlan::note_placed(NodeSlot slot) {
  if (cluster_ == nullptr) return;
  ++cluster_->group_tasks[slot];
  for (auto& [attribute, counts] : cluster_->by_value) {
    ++counts[Cluster::value_of(*cluster_->instances[slot], attribute)];
  }
}

}  // namespace cotenant::core
