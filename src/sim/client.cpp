#include "sim/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "codec/ecs_request.h"
#include "codec/json.h"
#include "core/reducer.h"
#include "sim/definitions.h"

namespace cotenant::sim {
namespace {

const std::vector<std::string> kClusters = {"default", "default", "default", "default", "other"};

codec::Json parsed(const std::string& text) {
  auto json = codec::Json::parse(text);
  COTENANT_ASSERT(json.has_value());
  return std::move(*json);
}

}  // namespace

Client::Client(Env& env, Plane& plane)
    : env_(env), plane_(plane), caller_(env, plane), registrar_(env, caller_) {}

void Client::know_instance(const std::string& id) {
  instances_.push_back(id);
}

void Client::call() {
  const std::int64_t dice = env_.dice.below(1000);
  if (dice < 380) return run_task();
  if (dice < 420) return start_task();
  if (dice < 480) return repeat_run_task();
  if (dice < 840) return stop_task();
  if (dice < 870) return update_instance();
  if (dice < 885) return deregister_instance();
  if (dice < 925) {
    return registrar_.register_definition(
        static_cast<std::size_t>(env_.dice.below(static_cast<std::int64_t>(definition_count()))));
  }
  if (dice < 940) return registrar_.deregister_definition();
  if (dice < 950) return registrar_.delete_definitions();
  if (dice < 970) return tag();
  if (dice < 990) return registrar_.create_cluster(env_.dice.any(kClusters));
  registrar_.delete_cluster(env_.dice.any(kClusters));
}

void Client::mend() {
  if (!plane_.up() || !idle()) return;
  const auto found = plane_.state().clusters.find(core::kDefaultCluster);
  if (found == plane_.state().clusters.end() || !found->second.active()) {
    registrar_.create_cluster(core::kDefaultCluster);
  }
}

void Client::tag() {
  registrar_.tag("default", task_ids_.empty() ? "" : env_.dice.any(task_ids_));
}

void Client::run_task() {
  const std::string name = fmt::format("call-{}", ++calls_);
  const auto kind =
      static_cast<std::size_t>(env_.dice.below(static_cast<std::int64_t>(definition_count())));
  const bool has_token = env_.dice.per_mille(400);
  std::string body = fmt::format(
      R"({{"cluster":"{}","taskDefinition":"{}","count":{},"startedBy":"{}")",
      env_.dice.any(kClusters), registrar_.any_definition(kind), env_.dice.between(1, 4), name);
  if (has_token) {
    body += fmt::format(R"(,"clientToken":"token-{}")", name);
    with_token_.push_back(name);
  }
  auto decoded = codec::decode_run_task(parsed(body + "}"));
  COTENANT_ASSERT(decoded.has_value());
  runs_[name].command = std::move(decoded->value);
  send_run(name);
}

// As a caller does that has had no answer; or one that has had one.
void Client::repeat_run_task() {
  if (!with_token_.empty()) send_run(env_.dice.any(with_token_));
}

void Client::send_run(const std::string& name) {
  const Run& sent = runs_.at(name);
  env_.journal.note("client: RunTask {} {} x{}", name, sent.command.definition.family,
                    sent.command.count);
  expect_tasks(sent.command, name);
}

void Client::expect_tasks(core::Command command, const std::string& name) {
  Run& sent = runs_.at(name);
  ++sent.sent;
  ++sent.attempts;
  caller_.send(std::move(command),
               [this, name](Fate fate, const core::Reply* reply, const core::State* state) {
                 if (fate != Fate::kUnknown) --runs_.at(name).attempts;
                 if (fate != Fate::kAcknowledged) return;
                 tasks_answered(name, std::get<core::RunTaskReply>(*reply), *state);
               });
}

void Client::tasks_answered(const std::string& name, const core::RunTaskReply& answer,
                            const core::State& state) {
  Run& run = runs_.at(name);
  const std::set<std::string> ids(answer.task_ids.begin(), answer.task_ids.end());
  if (ids.size() + answer.failures.size() != static_cast<std::size_t>(run.command.count)) {
    env_.journal.violation("{}: {} tasks and {} failures for a count of {}", name, ids.size(),
                           answer.failures.size(), run.command.count);
  }
  if (!run.acknowledged.empty() && ids != run.acknowledged) {
    env_.journal.violation("{}: the same token was answered {} and {}", name,
                           fmt::join(run.acknowledged, ","), fmt::join(ids, ","));
  }
  for (const std::string& id : ids) {
    if (!tasks_.emplace(id, name).second) continue;
    task_ids_.push_back(id);
    ++tasks_placed_;
    const auto task = state.tasks.find(id);
    if (task == state.tasks.end()) {
      env_.journal.violation("{}: task {} was answered and is not there", name, id);
    } else if (run.sent == 1) {
      // A repeated call may be answered what an earlier one has done.
      registrar_.ran(task->second.family, task->second.revision,
                     run.command.definition.revision.has_value());
    }
  }
  run.acknowledged.insert(ids.begin(), ids.end());
}

void Client::start_task() {
  const std::string name = fmt::format("call-{}", ++calls_);
  const auto kind =
      static_cast<std::size_t>(env_.dice.below(static_cast<std::int64_t>(definition_count())));
  auto decoded = codec::decode_start_task(
      parsed(fmt::format(R"({{"cluster":"default","taskDefinition":"{}","startedBy":"{}",)"
                         R"("containerInstances":["{}"]}})",
                         registrar_.any_definition(kind), name, env_.dice.any(instances_))));
  COTENANT_ASSERT(decoded.has_value());
  runs_[name].command = decoded->value.launch;
  runs_[name].command.count = 1;
  env_.journal.note("client: StartTask {} {}", name, runs_[name].command.definition.family);
  expect_tasks(std::move(decoded->value), name);
}

void Client::update_instance() {
  const std::string id = env_.dice.any(instances_);
  // Draining is the rarer state.
  const char* status = env_.dice.per_mille(300) ? "DRAINING" : "ACTIVE";
  auto decoded = codec::decode_update_instances_state(
      parsed(fmt::format(R"({{"containerInstances":["{}"],"status":"{}"}})", id, status)));
  COTENANT_ASSERT(decoded.has_value());
  env_.journal.note("client: UpdateContainerInstancesState {} {}", id, status);
  caller_.send(std::move(*decoded), [](Fate, auto*, auto*) {});
}

void Client::deregister_instance() {
  const std::string id = env_.dice.any(instances_);
  auto decoded = codec::decode_deregister_instance(parsed(
      fmt::format(R"({{"containerInstance":"{}","force":{}}})", id, env_.dice.per_mille(500))));
  COTENANT_ASSERT(decoded.has_value());
  deregister(std::move(*decoded));
}

void Client::deregister(core::DeregisterInstance command) {
  env_.journal.note("client: DeregisterContainerInstance {} force {}", command.instance_id,
                    command.force);
  core::DeregisterInstance again = command;
  caller_.send(std::move(command), [this, again](Fate, const core::Reply* reply, auto*) {
    if (reply != nullptr && std::get<core::BoundedReply>(*reply).more) deregister(again);
  });
}

void Client::stop_task() {
  if (task_ids_.empty()) return;
  const auto at =
      static_cast<std::size_t>(env_.dice.below(static_cast<std::int64_t>(task_ids_.size())));
  const std::string id = task_ids_[at];
  if (!env_.dice.per_mille(100)) {
    task_ids_[at] = task_ids_.back();
    task_ids_.pop_back();
  }
  const std::string cluster = runs_.at(tasks_.at(id)).command.cluster;
  auto decoded = codec::decode_stop_task(
      parsed(fmt::format(R"({{"cluster":"{}","task":"{}","reason":"enough"}})", cluster, id)));
  COTENANT_ASSERT(decoded.has_value());
  env_.journal.note("client: StopTask {}", id);
  caller_.send(std::move(*decoded), [this, id](Fate fate, auto*, auto*) {
    if (fate == Fate::kAcknowledged) {
      stopped_.insert(id);
    } else {
      task_ids_.push_back(id);
    }
  });
}

void Client::stop_everything() {
  if (!plane_.up()) return;
  std::vector<core::StopTask> stops;
  for (const auto& [id, task] : plane_.state().tasks) {
    if (task.desired_status == core::DesiredStatus::kRunning)
      stops.push_back({task.cluster, id, ""});
  }
  for (core::StopTask& stop : stops) {
    caller_.send(stop, [this, id = stop.task_id](Fate fate, auto*, auto*) {
      if (fate == Fate::kAcknowledged) stopped_.insert(id);
    });
  }
}

void Client::check(const core::State& state, const std::set<std::string>& forgotten) {
  registrar_.check(state);
  std::map<std::string, std::set<std::string>> found;
  for (const auto& [id, task] : state.tasks) {
    found[task.started_by].insert(id);
    if (stopped_.contains(id) && task.desired_status != core::DesiredStatus::kStopped) {
      env_.journal.violation("StopTask {} was acknowledged, and it is desired to run", id);
    }
    if (!runs_.contains(task.started_by)) {
      env_.journal.violation("task {} is of no call: '{}'", id, task.started_by);
    }
  }
  for (auto& [name, run] : runs_) {
    const std::set<std::string>& now = found[name];
    std::set<std::string>& known = run.found ? *run.found : run.found.emplace();
    for (const std::string& id : run.acknowledged) {
      if (!now.contains(id) && !forgotten.contains(id)) {
        env_.journal.violation("task {} of {} was acknowledged and never seen", id, name);
      }
    }
    std::set<std::string> ever = now;
    ever.insert(known.begin(), known.end());
    if (!now.empty() && !known.empty() && ever != known) {
      env_.journal.violation("{} has grown from {} to {} tasks", name, known.size(), ever.size());
    }
    if (!ever.empty() && run.acknowledged.empty() && run.attempts == 0) {
      env_.journal.violation("{} was refused and has {} tasks", name, ever.size());
    }
    if (!run.acknowledged.empty() && ever.size() > run.acknowledged.size() &&
        (run.attempts == 0 || !run.command.client_token.empty())) {
      env_.journal.violation("{} was answered {} tasks and has {}", name, run.acknowledged.size(),
                             ever.size());
    }
    if (ever.size() > static_cast<std::size_t>(run.command.count)) {
      env_.journal.violation("{} has {} tasks for a count of {}", name, ever.size(),
                             run.command.count);
    }
    known = std::move(ever);
  }
}

}  // namespace cotenant::sim
