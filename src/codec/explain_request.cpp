#include "codec/explain_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "codec/api_schema.h"
#include "codec/gpu_rules.h"
#include "codec/invalid.h"
#include "codec/utf8.h"

namespace cotenant::codec {
namespace {

base::Result<int> number_member(const Json& body, std::string_view name, int fallback, int least,
                                int most) {
  const Json* value = body.find(name);
  if (value == nullptr) return fallback;
  if (!value->is_integer()) {
    return base::fail(base::ErrorCode::kSerialization,
                      fmt::format("{}: must be an integer, not {}", name, value->kind_name()));
  }
  if (value->as_integer() < least || value->as_integer() > most) {
    return invalid(name,
                   fmt::format("must be from {} to {}, not {}", least, most, value->as_integer()));
  }
  return static_cast<int>(value->as_integer());
}

base::Error in_definition(base::Error error) {
  error.message = "definition." + error.message;
  return error;
}

// ECS's model of an operation's input, with the warnings of what it does not know.
base::Status check_model(std::string_view operation, const Json& body,
                         std::vector<std::string>& warnings) {
  auto checked = check_input(*find_operation(operation), body);
  if (!checked) return base::fail(with_gpu_documentation(checked.error()));
  warnings.insert(warnings.end(), checked->begin(), checked->end());
  return {};
}

base::Status read_definition(const Json& json, core::ExplainQuestion& question,
                             std::vector<std::string>& warnings) {
  if (!json.is_object()) {
    return base::fail(base::ErrorCode::kSerialization,
                      fmt::format("definition: must be an object, the input of "
                                  "RegisterTaskDefinition, not {}",
                                  json.kind_name()));
  }
  std::vector<std::string> its_warnings;
  if (auto status = check_model("RegisterTaskDefinition", json, its_warnings); !status) {
    return base::fail(in_definition(status.error()));
  }
  auto decoded = decode_register_task_definition(json);
  if (!decoded) return base::fail(in_definition(decoded.error()));
  for (const auto* list : {&its_warnings, &decoded->warnings}) {
    for (const std::string& warning : *list) warnings.push_back("definition." + warning);
  }
  question.definition = std::move(decoded->value.definition);
  return {};
}

base::Status read_task(const Json& body, core::ExplainQuestion& question) {
  static constexpr std::array<std::string_view, 3> kMembers = {"task", "cluster", "instances"};
  for (const Json::Member& member : body.as_object()) {
    if (member.value.is_null()) continue;
    if (std::find(kMembers.begin(), kMembers.end(), member.name) == kMembers.end()) {
      return invalid(shortened(member.name),
                     "does not go with task, which has its own; give cluster and instances only");
    }
  }
  auto cluster = decode_cluster(body);
  if (!cluster) return base::fail(cluster.error());
  auto ref = base::parse_resource_ref("task", body.find("task")->as_string());
  if (!ref) {
    return base::fail(ref.error().code, fmt::format("task: {}", ref.error().message));
  }
  if (ref->cluster && *ref->cluster != *cluster) {
    return invalid(
        "task", fmt::format("is of cluster '{}', and cluster says '{}'", *ref->cluster, *cluster));
  }
  question.run.cluster = std::move(*cluster);
  question.task_id = ref->id;
  return {};
}

}  // namespace

base::Result<Decoded<core::ExplainQuestion>> decode_explain(const Json& body) {
  Decoded<core::ExplainQuestion> decoded;
  core::ExplainQuestion& question = decoded.value;
  const Json* task = body.find("task");
  const Json* definition = body.find("definition");
  const int named = (task != nullptr ? 1 : 0) + (definition != nullptr ? 1 : 0) +
                    (body.find("taskDefinition") != nullptr ? 1 : 0);
  if (named != 1) {
    return invalid("taskDefinition",
                   "give just one of taskDefinition (a registered one), definition (the input of "
                   "RegisterTaskDefinition) and task (one that is there)");
  }
  auto instances = number_member(body, "instances", static_cast<int>(question.instances), 0,
                                 kExplainedInstancesMax);
  if (!instances) return base::fail(instances.error());
  question.instances = static_cast<std::size_t>(*instances);

  for (const std::string_view name : {"task", "cluster"}) {
    const Json* value = body.find(name);
    if (value == nullptr || value->is_string()) continue;
    return base::fail(base::ErrorCode::kSerialization,
                      fmt::format("{}: must be a string, not {}", name, value->kind_name()));
  }
  if (task != nullptr) {
    if (auto status = read_task(body, question); !status) return base::fail(status.error());
    return decoded;
  }

  if (definition != nullptr) {
    if (auto status = read_definition(*definition, question, decoded.warnings); !status) {
      return base::fail(status.error());
    }
  }
  auto count = number_member(body, "count", 1, 1, core::kExplainCountMax);
  if (!count) return base::fail(count.error());
  Json run = Json::object();
  for (const Json::Member& member : body.as_object()) {
    if (member.name == "definition" || member.name == "instances" || member.name == "count") {
      continue;
    }
    run.set(member.name, member.value);
  }
  if (question.definition) run.set("taskDefinition", question.definition->family);
  if (auto status = check_model("RunTask", run, decoded.warnings); !status) {
    return base::fail(status.error());
  }
  auto read = decode_run_task(run);
  if (!read) return base::fail(read.error());
  question.run = std::move(read->value);
  question.run.count = *count;
  decoded.warnings.insert(decoded.warnings.end(), read->warnings.begin(), read->warnings.end());
  return decoded;
}

}  // namespace cotenant::codec
