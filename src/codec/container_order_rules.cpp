// dependsOn, links and volumesFrom: who waits for whom.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codec/invalid.h"
#include "codec/task_definition_rules.h"

namespace cotenant::codec {
namespace {

using core::ContainerDefinition;
using core::DependencyCondition;
using core::TaskDefinition;

std::string names_of(const TaskDefinition& definition) {
  std::string names;
  for (const ContainerDefinition& container : definition.containers) {
    names += (names.empty() ? "" : ", ") + container.name;
  }
  return names;
}

base::Status check_name(const TaskDefinition& definition, const ContainerDefinition& from,
                        const std::string& name, const std::string& member) {
  if (name == from.name) return invalid(member, "a container cannot name itself");
  if (core::find_container(definition, name) != nullptr) return {};
  return invalid(member, fmt::format("'{}' is no container of this task, which has {}", name,
                                     names_of(definition)));
}

base::Status check_condition(const TaskDefinition& definition, const core::Dependency& dependency,
                             const std::string& path) {
  const ContainerDefinition& target = *core::find_container(definition, dependency.container);
  switch (dependency.condition) {
    case DependencyCondition::kStart:
      return {};
    case DependencyCondition::kHealthy:
      if (target.life.health_check) return {};
      return invalid(path + ".condition",
                     fmt::format("HEALTHY needs a healthCheck, which container '{}' does not have",
                                 target.name));
    case DependencyCondition::kComplete:
    case DependencyCondition::kSuccess:
      if (!target.essential) return {};
      return invalid(
          path + ".condition",
          fmt::format("{} waits for the end of container '{}', which is essential: its end "
                      "ends the task; set its essential to false",
                      core::to_string(dependency.condition), target.name));
  }
  return {};
}

// The container whose edge closes a circle, with the circle in words; empty where there is none.
struct Edge {
  std::string to;
  std::string member;
};
using Edges = std::map<std::string, std::vector<Edge>>;

base::Status find_circle(const Edges& edges, const std::string& at, std::vector<std::string>& way,
                         std::set<std::string>& done) {
  if (done.contains(at)) return {};
  way.push_back(at);
  for (const Edge& edge : edges.at(at)) {
    const auto seen = std::find(way.begin(), way.end(), edge.to);
    if (seen != way.end()) {
      return invalid(edge.member,
                     fmt::format("makes a circle: {} -> {}; no container of it could ever start",
                                 fmt::join(seen, way.end(), " -> "), edge.to));
    }
    if (auto status = find_circle(edges, edge.to, way, done); !status) return status;
  }
  way.pop_back();
  done.insert(at);
  return {};
}

}  // namespace

base::Status check_container_order(const TaskDefinition& definition) {
  Edges edges;
  for (std::size_t i = 0; i < definition.containers.size(); ++i) {
    const ContainerDefinition& container = definition.containers[i];
    const std::string path = fmt::format("containerDefinitions[{}].", i);
    std::vector<Edge>& out = edges[container.name];
    const auto add = [&](const std::string& name, std::string member) -> base::Status {
      if (auto status = check_name(definition, container, name, member); !status) return status;
      out.push_back({name, std::move(member)});
      return {};
    };
    for (std::size_t j = 0; j < container.life.depends_on.size(); ++j) {
      const core::Dependency& dependency = container.life.depends_on[j];
      const std::string at = fmt::format("{}dependsOn[{}]", path, j);
      if (auto status = add(dependency.container, at + ".containerName"); !status) return status;
      if (auto status = check_condition(definition, dependency, at); !status) return status;
    }
    for (std::size_t j = 0; j < container.host.links.size(); ++j) {
      const std::string& link = container.host.links[j];
      if (auto status = add(link.substr(0, link.find(':')), fmt::format("{}links[{}]", path, j));
          !status) {
        return status;
      }
    }
    for (std::size_t j = 0; j < container.host.volumes_from.size(); ++j) {
      if (auto status = add(container.host.volumes_from[j].container,
                            fmt::format("{}volumesFrom[{}].sourceContainer", path, j));
          !status) {
        return status;
      }
    }
  }
  std::set<std::string> done;
  std::vector<std::string> way;
  for (const ContainerDefinition& container : definition.containers) {
    if (auto status = find_circle(edges, container.name, way, done); !status) return status;
  }
  return {};
}

}  // namespace cotenant::codec
