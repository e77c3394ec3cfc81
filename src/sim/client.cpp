#include "sim/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "codec/ecs_request.h"
#include "codec/json.h"
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

Client::Client(Env& env, Plane& plane) : env_(env), plane_(plane) {}

void Client::know_instance(const std::string& id) {
  instances_.push_back(id);
}

void Client::call() {
  const std::int64_t dice = env_.dice.below(100);
  if (dice < 40) return run_task();
  if (dice < 44) return start_task();
  if (dice < 50) return repeat_run_task();
  if (dice < 88) return stop_task();
  if (dice < 91) return update_instance();
  if (dice < 92) return deregister_instance();
  if (dice < 97) {
    return register_definition(
        static_cast<std::size_t>(env_.dice.below(static_cast<std::int64_t>(definition_count()))));
  }
  create_cluster();
}

void Client::send(core::Command command, Settle settle) {
  ++waiting_;
  // Shared by the answer and by its owner's end without one.
  struct Pending {
    Client* client;
    Settle settle;
    bool answered = false;
    void end(Fate fate, const core::Reply* reply) {
      if (std::exchange(answered, true)) return;
      --client->waiting_;
      if (fate == Fate::kAcknowledged) ++client->acknowledged_;
      if (fate == Fate::kUnknown) ++client->unknown_;
      settle(fate, reply);
    }
    // The process that had it is gone.
    ~Pending() { end(Fate::kUnknown, nullptr); }
  };
  auto pending = std::make_shared<Pending>();
  pending->client = this;
  pending->settle = std::move(settle);
  const auto status =
      plane_.post(std::move(command),
                  [this, pending](const base::Result<core::Reply>& reply, const core::State&) {
                    if (reply) return pending->end(Fate::kAcknowledged, &*reply);
                    env_.journal.note("client: {}", reply.error().message);
                    pending->end(plane_.failed() ? Fate::kUnknown : Fate::kRefused, nullptr);
                  });
  if (!status) pending->end(Fate::kRefused, nullptr);
}

void Client::register_definitions() {
  for (std::size_t kind = 0; kind < definition_count(); ++kind) register_definition(kind);
}

void Client::register_definition(std::size_t kind) {
  const std::string tag = fmt::format("image-{}", ++calls_);
  auto decoded = codec::decode_register_task_definition(parsed(definition_body(kind, tag)));
  COTENANT_ASSERT(decoded.has_value());
  env_.journal.note("client: RegisterTaskDefinition {} {}", definition_family(kind), tag);
  send(std::move(decoded->value), [this, tag](Fate fate, const core::Reply* reply) {
    if (fate != Fate::kAcknowledged) return;
    const auto& made = std::get<core::TaskDefinitionReply>(*reply);
    const std::string name = fmt::format("{}:{}", made.family, made.revision);
    if (!definitions_.emplace(name, tag).second) {
      env_.journal.violation("{} was answered to two registrations", name);
    }
  });
}

void Client::create_cluster() {
  const std::string name = env_.dice.any(kClusters);
  send(core::CreateCluster{name}, [this, name](Fate fate, const core::Reply*) {
    if (fate == Fate::kAcknowledged) clusters_.insert(name);
  });
}

void Client::run_task() {
  const std::string name = fmt::format("call-{}", ++calls_);
  const auto kind =
      static_cast<std::size_t>(env_.dice.below(static_cast<std::int64_t>(definition_count())));
  const bool has_token = env_.dice.per_mille(400);
  std::string body =
      fmt::format(R"({{"cluster":"{}","taskDefinition":"{}","count":{},"startedBy":"{}")",
                  env_.dice.any(kClusters), definition_family(kind), env_.dice.between(1, 4), name);
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
  ++runs_.at(name).attempts;
  send(std::move(command), [this, name](Fate fate, const core::Reply* reply) {
    Run& run = runs_.at(name);
    if (fate != Fate::kUnknown) --run.attempts;
    if (fate != Fate::kAcknowledged) return;
    const auto& answer = std::get<core::RunTaskReply>(*reply);
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
      if (tasks_.emplace(id, name).second) {
        task_ids_.push_back(id);
        ++tasks_placed_;
      }
    }
    run.acknowledged.insert(ids.begin(), ids.end());
  });
}

void Client::start_task() {
  const std::string name = fmt::format("call-{}", ++calls_);
  const auto kind =
      static_cast<std::size_t>(env_.dice.below(static_cast<std::int64_t>(definition_count())));
  auto decoded = codec::decode_start_task(
      parsed(fmt::format(R"({{"cluster":"default","taskDefinition":"{}","startedBy":"{}",)"
                         R"("containerInstances":["{}"]}})",
                         definition_family(kind), name, env_.dice.any(instances_))));
  COTENANT_ASSERT(decoded.has_value());
  runs_[name].command = decoded->value.launch;
  runs_[name].command.count = 1;
  env_.journal.note("client: StartTask {} {}", name, definition_family(kind));
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
  send(std::move(*decoded), [](Fate, const core::Reply*) {});
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
  send(std::move(command), [this, again](Fate, const core::Reply* reply) {
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
  send(std::move(*decoded), [this, id](Fate fate, const core::Reply*) {
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
    send(stop, [this, id = stop.task_id](Fate fate, const core::Reply*) {
      if (fate == Fate::kAcknowledged) stopped_.insert(id);
    });
  }
}

void Client::check(const core::State& state, const std::set<std::string>& forgotten) {
  for (const std::string& name : clusters_) {
    if (!state.clusters.contains(name)) {
      env_.journal.violation("cluster {} was acknowledged and is not there", name);
    }
  }
  for (const auto& [name, image] : definitions_) {
    const auto ref = base::TaskDefinitionRef{name.substr(0, name.find(':')),
                                             std::atoll(name.c_str() + name.find(':') + 1)};
    const auto definition = core::find_definition(state, ref.family, *ref.revision);
    if (definition == nullptr || definition->containers[0].image != image) {
      env_.journal.violation("task definition {} ({}) was acknowledged and is {}", name, image,
                             definition == nullptr ? "not there" : definition->containers[0].image);
    }
  }

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
