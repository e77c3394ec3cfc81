#include "codec/placement_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "codec/invalid.h"
#include "core/placement/placement_policy.h"

namespace cotenant::codec {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// ECS writes CPU and MEMORY in its documentation and shows cpu and memory: both are taken.
base::Result<std::string> binpack_field(const std::string& field, const std::string& path) {
  for (const std::string_view known : {"cpu", "memory", "gpuMemory"}) {
    if (lower_case(field) == lower_case(std::string(known))) return std::string(known);
  }
  if (field.starts_with(core::kPolicyField)) {
    const std::string name = field.substr(core::kPolicyField.size());
    if (core::is_placement_policy(name)) return field;
    return invalid(path + ".field", fmt::format("'{:.64}' names no policy; there are {}", field,
                                                fmt::join(core::placement_policy_names(), ", ")));
  }
  return invalid(
      path + ".field",
      fmt::format("'{:.64}': binpack takes cpu, memory, gpuMemory or policy:<name>", field));
}

base::Result<std::string> spread_field(const std::string& field, const std::string& path) {
  if (field == "instanceId" || field == "host") return std::string("instanceId");
  if (field.starts_with(core::kAttributeField) && field.size() > core::kAttributeField.size()) {
    return field;
  }
  return invalid(path + ".field", fmt::format("'{:.64}': spread takes instanceId (or host) or "
                                              "attribute:<name>",
                                              field));
}

base::Result<core::PlacementStrategy> decode_strategy(const Json& json, const std::string& path,
                                                      std::vector<std::string>& warnings) {
  const std::string type = json.string_or("type", "");
  const std::string field = json.string_or("field", "");
  if (type == "random") {
    if (!field.empty()) warnings.push_back(path + ".field: is not used with random");
    return core::PlacementStrategy{core::StrategyType::kRandom, ""};
  }
  const bool spread = type == "spread";
  if (!spread && type != "binpack") {
    return invalid(path + ".type",
                   fmt::format("'{:.64}' is none of binpack, spread, random", type));
  }
  auto known = spread ? spread_field(field, path) : binpack_field(field, path);
  if (!known) return base::fail(known.error());
  return core::PlacementStrategy{
      spread ? core::StrategyType::kSpread : core::StrategyType::kBinpack, std::move(*known)};
}

}  // namespace

base::Status decode_placement_constraints(const Json::Array& list, bool distinct_allowed,
                                          core::PlacementRules& rules) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("placementConstraints[{}]", i);
    const std::string type = list[i].string_or("type", "");
    const std::string expression = list[i].string_or("expression", "");
    if (type == "distinctInstance" && distinct_allowed) {
      if (!expression.empty()) {
        return invalid(path + ".expression", "distinctInstance takes none; leave it out");
      }
      rules.distinct_instance = true;
      continue;
    }
    if (type != "memberOf") {
      return invalid(path + ".type",
                     distinct_allowed ? "must be distinctInstance or memberOf"
                                      : "must be memberOf, the one that a task definition takes");
    }
    auto query = core::Query::parse(expression);
    if (!query) return invalid(path + ".expression", query.error().message);
    rules.member_of.push_back(std::move(*query));
  }
  return {};
}

base::Status decode_placement_strategy(const Json::Array& list, core::PlacementRules& rules,
                                       std::vector<std::string>& warnings) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("placementStrategy[{}]", i);
    auto strategy = decode_strategy(list[i], path, warnings);
    if (!strategy) return base::fail(strategy.error());
    const auto& known = rules.strategies;
    if (std::find(known.begin(), known.end(), *strategy) != known.end()) {
      return invalid(path, "stands there a second time; leave it out");
    }
    rules.strategies.push_back(std::move(*strategy));
  }
  const auto names_policy = [](const core::PlacementStrategy& strategy) {
    return strategy.field.starts_with(core::kPolicyField);
  };
  if (rules.strategies.size() > 1 &&
      std::any_of(rules.strategies.begin(), rules.strategies.end(), names_policy)) {
    return invalid("placementStrategy",
                   "a policy:<name> ranks all by itself; leave the other strategies out");
  }
  return {};
}

}  // namespace cotenant::codec
