#include "server/core_engine.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "codec/record.h"

namespace cotenant::server {
namespace {

constexpr base::TimeMs kExpireEveryMs = 60 * 1000;
// The most records that one command may touch: ten tasks and a client token, or a page of expired ones.
constexpr std::size_t kRecordsPerCommand = 16;
constexpr const char* kProbeKey = "probe/writable";

}  // namespace

CoreEngine::CoreEngine(ports::Store& store, const base::Clock& clock, std::uint64_t seed)
    : store_(&store), clock_(&clock), prng_(seed) {}

base::Result<CoreEngine> CoreEngine::load(ports::Store& store, const base::Clock& clock,
                                          std::uint64_t seed) {
  auto snapshot = store.load();
  if (!snapshot) return base::fail(snapshot.error());
  CoreEngine engine(store, clock, seed);
  engine.revision_ = snapshot->revision;
  auto state = codec::decode_records(snapshot->records);
  if (!state) return base::fail(state.error());
  engine.state_ = std::move(*state);
  if (engine.state_.clusters.count(core::kDefaultCluster) == 0) {
    core::Effects effects;
    engine.state_.clusters.merge(core::initial_state(clock.now_ms()).clusters);
    effects.changed_records.insert({core::RecordKind::kCluster, core::kDefaultCluster});
    if (auto status = engine.commit(effects); !status) return base::fail(status.error());
  }
  return engine;
}

void CoreEngine::run(std::vector<PendingCommand> batch) {
  const core::Context context{clock_->now_ms(), prng_};
  const std::size_t writes_max = store_->limits().writes_per_commit;
  core::Effects effects;
  std::vector<Answer> answers;
  for (PendingCommand& pending : batch) {
    if (failed_ || !writable_) {
      answers.push_back({std::move(pending.done), base::fail(refusal())});
      continue;
    }
    auto outcome = core::apply(state_, pending.command, context);
    if (!outcome) {
      answers.push_back({std::move(pending.done), base::fail(outcome.error())});
      continue;
    }
    effects.changed_records.merge(outcome->effects.changed_records);
    for (auto& [instance_id, task_ids] : outcome->effects.notify_tasks) {
      effects.notify_tasks[instance_id].merge(task_ids);
    }
    answers.push_back({std::move(pending.done), std::move(outcome->reply)});
    if (effects.changed_records.size() + kRecordsPerCommand > writes_max) flush(effects, answers);
  }
  flush(effects, answers);
}

void CoreEngine::flush(core::Effects& effects, std::vector<Answer>& answers) {
  if (auto status = commit(effects); !status) {
    roll_back(status.error());
    for (Answer& answer : answers) answer.reply = base::fail(refusal());
  } else if (sink_ != nullptr && !effects.notify_tasks.empty()) {
    sink_->on_effects(state_, effects);
  }
  for (const Answer& answer : answers) {
    if (answer.done) answer.done(answer.reply, state_);
  }
  effects = {};
  answers.clear();
}

base::Status CoreEngine::commit(const core::Effects& effects) {
  if (effects.changed_records.empty()) return {};
  std::vector<ports::StoreWrite> writes;
  writes.reserve(effects.changed_records.size());
  for (const core::RecordRef& ref : effects.changed_records) {
    writes.push_back({codec::record_key(ref), codec::encode_record(state_, ref)});
  }
  auto revision = store_->commit(writes, revision_);
  if (!revision) return base::fail(revision.error());
  revision_ = *revision;
  return {};
}

void CoreEngine::roll_back(const base::Error& cause) {
  if (cause.code != base::ErrorCode::kUnavailable) {
    failed_ = cause;
    base::log::error("the store's state is unknown, the control plane stops: {}", cause.message);
    return;
  }
  writable_ = false;
  refused_because_ = cause.message;
  base::log::error("the store refuses writes, reads go on: {}", cause.message);

  auto snapshot = store_->load();
  auto state = snapshot ? codec::decode_records(snapshot->records)
                        : base::Result<core::State>(base::fail(snapshot.error()));
  if (!state) {
    failed_ = state.error();
    base::log::error("the store cannot be read back, the control plane stops: {}",
                     state.error().message);
    return;
  }
  // Connections are facts of this moment, not of the store.
  for (auto& [id, instance] : state->instances) {
    const auto before = state_.instances.find(id);
    if (before == state_.instances.end()) continue;
    instance.agent_connected = before->second.agent_connected;
    instance.connection_epoch = before->second.connection_epoch;
  }
  revision_ = snapshot->revision;
  state_ = std::move(*state);
}

base::Error CoreEngine::refusal() const {
  if (failed_) {
    return {base::ErrorCode::kServer,
            fmt::format("the control plane has stopped: {}", failed_->message)};
  }
  return {base::ErrorCode::kServer,
          fmt::format("nothing was changed, because the store refuses writes: {}; try again when that "
                      "is mended",
                      refused_because_)};
}

void CoreEngine::tick() {
  if (failed_) return;
  const base::TimeMs now_ms = clock_->now_ms();
  if (!writable_) {
    const std::vector<ports::StoreWrite> probe = {{kProbeKey, std::to_string(now_ms)}};
    if (auto revision = store_->commit(probe, revision_)) {
      revision_ = *revision;
      writable_ = true;
      base::log::info("the store takes writes again");
    } else if (revision.error().code != base::ErrorCode::kUnavailable) {
      roll_back(revision.error());
    }
  }
  if (writable_ && now_ms >= expired_at_ms_ + kExpireEveryMs) {
    expired_at_ms_ = now_ms;
    run({{core::Expire{}, nullptr}});
  }
}

}  // namespace cotenant::server
