#include "agent/start_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/pause_container.h"

namespace cotenant::agent {
namespace {

using base::TimeMs;
using core::DependencyCondition;
using core::DesiredContainer;
using ports::ContainerPhase;

StartVerdict waiting() {
  return {false, {}};
}

StartVerdict never(const std::string& name, DependencyCondition condition, std::string_view why) {
  return {false, fmt::format("dependsOn: container '{}' can no longer reach {}: {}", name,
                             core::to_string(condition), why)};
}

std::string end_of(const DependencyTarget& target) {
  if (target.state == nullptr || !target.state->exit_code) return "it did not run";
  return fmt::format("it exited with code {}", *target.state->exit_code);
}

// The target runs or waits. How long it may take counts from its own start.
StartVerdict wait_for(const DesiredContainer& target, const ports::ContainerState* state,
                      DependencyCondition condition, TimeMs now_ms) {
  const auto timeout_s = target.definition.life.start_timeout_s;
  const bool running = state != nullptr && state->phase == ContainerPhase::kRunning;
  if (running && timeout_s && now_ms >= state->started_at_ms + *timeout_s * 1000) {
    return never(target.definition.name, condition,
                 fmt::format("its startTimeout of {} s is over", *timeout_s));
  }
  return waiting();
}

StartVerdict judge(const DesiredContainer& container, DependencyCondition condition,
                   const DependencyTarget& target, TimeMs now_ms) {
  const ports::ContainerState* state = target.state;
  const bool running = state != nullptr && state->phase == ContainerPhase::kRunning;
  const bool ran = state != nullptr && (running || state->exit_code.has_value());
  const std::string& name = container.definition.name;
  switch (condition) {
    case DependencyCondition::kStart:
      if (ran) return {};
      if (target.over) return never(name, condition, end_of(target));
      return waiting();
    case DependencyCondition::kComplete:
      if (target.over && ran) return {};
      if (target.over) return never(name, condition, end_of(target));
      break;
    case DependencyCondition::kSuccess:
      if (target.over && ran && *state->exit_code == 0) return {};
      if (target.over) return never(name, condition, end_of(target));
      break;
    case DependencyCondition::kHealthy:
      if (running && state->health == core::HealthStatus::kHealthy) return {};
      if (target.over) return never(name, condition, end_of(target));
      break;
  }
  return wait_for(container, state, condition, now_ms);
}

std::string linked_name(const std::string& link) {
  return link.substr(0, link.find(':'));
}

}  // namespace

StartVerdict judge_start(const core::DesiredTask& task, const DesiredContainer& container,
                         const FindTarget& find, TimeMs now_ms) {
  std::vector<core::Dependency> dependencies = container.definition.life.depends_on;
  for (const std::string& link : container.definition.host.links) {
    dependencies.push_back({linked_name(link), DependencyCondition::kStart});
  }
  StartVerdict all;
  for (const core::Dependency& dependency : dependencies) {
    const auto target = std::find_if(
        task.containers.begin(), task.containers.end(),
        [&](const auto& part) { return part.definition.name == dependency.container; });
    if (target == task.containers.end()) continue;  // registration has refused such a name
    const StartVerdict verdict =
        judge(*target, dependency.condition, find(dependency.container), now_ms);
    all.met = all.met && verdict.met;
    if (all.impossible.empty()) all.impossible = verdict.impossible;
  }
  return all;
}

std::vector<std::string> creation_order(const core::ContainerDefinition& definition) {
  std::vector<std::string> names;
  for (const core::Dependency& dependency : definition.life.depends_on) {
    if (dependency.container == kPauseName) names.push_back(dependency.container);
  }
  for (const std::string& link : definition.host.links) names.push_back(linked_name(link));
  for (const core::VolumesFrom& from : definition.host.volumes_from) {
    names.push_back(from.container);
  }
  return names;
}

bool stops_before(const core::ContainerDefinition& dependent, const std::string& target) {
  const auto& depends_on = dependent.life.depends_on;
  const auto& links = dependent.host.links;
  return std::any_of(depends_on.begin(), depends_on.end(),
                     [&](const auto& entry) { return entry.container == target; }) ||
         std::any_of(links.begin(), links.end(),
                     [&](const auto& link) { return linked_name(link) == target; });
}

bool restarts(const core::ContainerDefinition& definition, const ports::ContainerState& state) {
  const auto& policy = definition.life.restart;
  if (!policy || state.phase != ContainerPhase::kStopped || !state.exit_code) return false;
  const auto& ignored = policy->ignored_exit_codes;
  if (std::find(ignored.begin(), ignored.end(), *state.exit_code) != ignored.end()) return false;
  return state.finished_at_ms - state.started_at_ms >= policy->attempt_period_s * 1000;
}

}  // namespace cotenant::agent
