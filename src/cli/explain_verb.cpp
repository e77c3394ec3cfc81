#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/api_client.h"
#include "cli/client_verbs.h"
#include "cli/definition_file.h"
#include "cli/exit_code.h"
#include "cli/table.h"
#include "cli/task_queries.h"

namespace cotenant::cli {
namespace {

using codec::Json;

const Json& member(const Json& json, std::string_view name) {
  static const Json kNothing = Json::object();
  const Json* found = json.find(name);
  return found == nullptr ? kNothing : *found;
}

// An id as the API and `ps` show it, or its beginning.
bool looks_like_task_id(const std::string& what) {
  constexpr std::size_t kDigitsMin = 8;
  constexpr std::size_t kDigitsMax = 32;
  return what.size() >= kDigitsMin && what.size() <= kDigitsMax &&
         what.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// A file with a definition or with an input of RunTask; a task; else the name of a definition.
base::Result<Json> question_about(const ApiClient& client, const std::string& what) {
  if (names_file(what)) {
    auto file = read_json_file(what);
    if (!file) return base::fail(file.error());
    if (file->find("taskDefinition") != nullptr) return file;
    return Json::object({{"definition", std::move(*file)}});
  }
  if (what.find(":task/") != std::string::npos) return Json::object({{"task", what}});
  if (looks_like_task_id(what)) {
    auto task = resolve_task(client, what);
    if (!task) return base::fail(task.error());
    if (*task != what) return Json::object({{"task", *task}});
    // One that is forgotten, unless it is the name of a family.
    constexpr std::size_t kIdDigits = 32;
    if (what.size() == kIdDigits) return Json::object({{"task", what}});
  }
  return Json::object({{"taskDefinition", what}});
}

std::string gpu_need_text(const Json& gpu) {
  const std::string kind = gpu.string_or("kind", "none");
  if (kind == "none") return "no GPU";
  if (kind == "shared") {
    return fmt::format("{} MiB of one GPU for {} container(s)", gpu.integer_or("memoryInMiB", 0),
                       gpu.integer_or("containers", 0));
  }
  const Json* count = gpu.find("count");
  if (count != nullptr && count->is_string()) return "every GPU of an instance, idle";
  return fmt::format("{} whole GPU(s) of one instance", gpu.integer_or("count", 0));
}

std::string rule_text(const Json& rule) {
  std::string text = rule.string_or("type", "");
  for (const char* part : {"field", "expression"}) {
    if (const std::string more = rule.string_or(part, ""); !more.empty()) text += " " + more;
  }
  return text;
}

void print_request(const Json& request) {
  const bool registered = request.bool_or("registered", true);
  fmt::print("{}{}: {} in cluster {}, group {}\n", request.string_or("family", ""),
             registered ? fmt::format(":{}", request.integer_or("revision", 0))
                        : std::string(" (not registered)"),
             request.integer_or("count", 1), request.string_or("cluster", ""),
             request.string_or("group", ""));
  fmt::print("needs: {} CPU units, {} MiB, {}", request.integer_or("cpu", 0),
             request.integer_or("memory", 0), gpu_need_text(member(request, "gpu")));
  for (const Json& port : request.array_or_empty("hostPorts")) {
    fmt::print(", port {}/{}", port.integer_or("port", 0), port.string_or("protocol", ""));
  }
  fmt::print("\n");
  for (const Json& constraint : request.array_or_empty("placementConstraints")) {
    fmt::print("constraint{}: {}\n",
               constraint.string_or("from", "") == "call" ? "" : " of the definition",
               rule_text(constraint));
  }
  const Json::Array& strategies = request.array_or_empty("placementStrategy");
  if (const std::string policy = request.string_or("policy", ""); !policy.empty()) {
    fmt::print("ranked by: policy {} of the {}, which has seen {} requests\n", policy,
               request.string_or("policyFrom", ""), request.integer_or("requestsLearned", 0));
  } else {
    std::string text;
    for (const Json& strategy : strategies) {
      text += (text.empty() ? "" : ", then ") + rule_text(strategy);
    }
    fmt::print("ranked by: {}\n", text);
  }
}

std::string gpus_text(const Json& place) {
  std::string text;
  for (const Json& gpu : place.array_or_empty("gpus")) {
    text += fmt::format("{}{} {} ({}), {} of {} MiB left", text.empty() ? "" : "; ",
                        gpu.integer_or("index", 0), gpu.string_or("gpuId", "").substr(0, 12),
                        gpu.string_or("sharingMode", ""), gpu.integer_or("remainingMemoryInMiB", 0),
                        gpu.integer_or("totalMemoryInMiB", 0));
  }
  return text.empty() ? "-" : text;
}

// "tight -40, cpu 12 per-mille of a GPU; ...": a unit behind the last of the terms that have it.
std::string terms_text(const Json& place) {
  std::string text;
  const Json::Array& terms = place.array_or_empty("terms");
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::string unit = terms[i].string_or("unit", "");
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", terms[i].string_or("name", ""),
                        terms[i].integer_or("value", 0));
    if (i + 1 == terms.size() || terms[i + 1].string_or("unit", "") != unit) text += " " + unit;
  }
  return text.empty() ? "-" : text;
}

std::string cost_text(const Json& place) {
  const Json* cost = place.find("cost");
  return cost == nullptr ? "-" : std::to_string(cost->as_integer());
}

void print_ranking(const Json& decision) {
  Table table({"RANK", "INSTANCE", "GPU", "CPU LEFT", "MIB LEFT", "COST", "MADE OF"});
  int rank = 0;
  const auto add = [&](const Json& place) {
    table.add({std::to_string(++rank), short_id(place.string_or("containerInstanceArn", "")),
               gpus_text(place), std::to_string(place.integer_or("remainingCpu", 0)),
               std::to_string(place.integer_or("remainingMemory", 0)), cost_text(place),
               terms_text(place)});
  };
  const Json& place = member(decision, "place");
  add(place);
  const Json::Array& others = decision.array_or_empty("others");
  for (const Json& other : others) add(other);
  fmt::print("{}", table.text());
  if (const std::string unit = place.string_or("costUnit", ""); !unit.empty()) {
    fmt::print("COST counts {}; the least wins.\n", unit);
  }
  const std::int64_t fits = member(decision, "feasibility").integer_or("fits", 0);
  if (const std::int64_t more = fits - rank; more > 0)
    fmt::print("... and {} more that fit\n", more);
  if (!decision.bool_or("scoredAll", true)) {
    fmt::print(
        "The cluster is large and not all of its scores are up to date: the best of those "
        "that are, is taken.\n");
  }
}

void print_feasibility(const Json& found) {
  const std::int64_t instances = found.integer_or("instances", 0);
  fmt::print("{} ACTIVE instance(s): {} fit(s), {} NoFit, {} Infeasible", instances,
             found.integer_or("fits", 0), found.integer_or("noFit", 0),
             found.integer_or("infeasible", 0));
  if (const std::int64_t draining = found.integer_or("draining", 0); draining > 0) {
    fmt::print("; {} DRAINING, not asked", draining);
  }
  fmt::print("\n");
  for (const Json& reason : found.array_or_empty("reasons")) {
    const std::string constraint = reason.string_or("constraint", "");
    fmt::print("  {}{}: {} NoFit, {} Infeasible\n", reason.string_or("reason", ""),
               constraint.empty() ? "" : " (" + constraint + ")", reason.integer_or("noFit", 0),
               reason.integer_or("infeasible", 0));
  }
  Table table({"INSTANCE", "VERDICT", "REASON", "WHAT IS IN THE WAY"});
  for (const Json& each : found.array_or_empty("refusing")) {
    table.add({short_id(each.string_or("containerInstanceArn", "")), each.string_or("verdict", ""),
               each.string_or("reason", ""), each.string_or("detail", "")});
  }
  if (!table.empty()) fmt::print("{}", table.text());
  if (const std::int64_t more = found.integer_or("refusingNotListed", 0); more > 0) {
    fmt::print("... and {} more that do not\n", more);
  }
}

void print_task(const Json& task) {
  fmt::print("task {} is {} on instance {}", short_id(task.string_or("taskArn", "")),
             task.string_or("lastStatus", ""),
             short_id(task.string_or("containerInstanceArn", "")));
  if (const Json* place = task.find("place")) {
    fmt::print(", GPU {}\n  today, as if it were not there: {}\n", gpus_text(*place),
               terms_text(*place));
  } else if (const std::string misfit = task.string_or("misfit", ""); !misfit.empty()) {
    fmt::print("\n  where it would not fit today: {}\n", misfit);
  } else {
    fmt::print("\n  {}{}{}\n", task.string_or("stopCode", ""),
               task.find("stoppedReason") == nullptr ? "" : ": ",
               task.string_or("stoppedReason", ""));
  }
  fmt::print("  (constraints and strategies of the call that started it are not kept)\n");
}

// "1-4", or "7".
std::string copies_text(std::size_t from, std::size_t to) {
  return from == to ? std::to_string(from) : fmt::format("{}-{}", from, to);
}

void print_explanation(const Json& reply) {
  if (const Json* task = reply.find("task")) print_task(*task);
  print_request(member(reply, "request"));
  const Json::Array& decisions = reply.array_or_empty("decisions");
  const auto count = static_cast<std::size_t>(member(reply, "request").integer_or("count", 1));
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Json& decision = decisions[i];
    const bool placed = decision.string_or("outcome", "") == "PLACED";
    const std::string copies = copies_text(i + 1, placed ? i + 1 : count);
    fmt::print("\n");
    if (placed) {
      const Json& place = member(decision, "place");
      fmt::print("{}: goes to instance {}, GPU {}\n", copies,
                 short_id(place.string_or("containerInstanceArn", "")), gpus_text(place));
    } else {
      const Json& failure = member(decision, "failure");
      fmt::print("{}: not placed: {}: {}\n", copies, failure.string_or("reason", ""),
                 failure.string_or("detail", ""));
    }
    for (const Json& strategy : decision.array_or_empty("strategies")) {
      fmt::print("  {}: kept {} of {}\n", rule_text(strategy), strategy.integer_or("kept", 0),
                 strategy.integer_or("given", 0));
    }
    if (placed) print_ranking(decision);
    if (const Json* found = decision.find("feasibility")) print_feasibility(*found);
  }
}

}  // namespace

int explain_verb(const ClientOptions& options, const ExplainOptions& explain) {
  auto client = ApiClient::create(options);
  if (!client) return report(client.error());
  auto body = question_about(*client, explain.what);
  if (!body) return report(body.error());
  if (explain.count != 0) body->set("count", explain.count);
  body->set("instances", explain.instances);
  auto reply = client->call("Cotenant.Explain", std::move(*body));
  if (!reply) return report(reply.error());
  if (options.json) {
    fmt::print("{}\n", reply->dump_pretty());
  } else {
    print_explanation(*reply);
  }
  const Json::Array& decisions = reply->array_or_empty("decisions");
  const bool all = std::all_of(decisions.begin(), decisions.end(), [](const Json& decision) {
    return decision.string_or("outcome", "") == "PLACED";
  });
  return all ? kExitOk : kExitRefused;
}

}  // namespace cotenant::cli
