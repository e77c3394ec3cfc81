#include "server/core_engine.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "base/log.h"
#include "codec/record.h"

namespace cotenant::server {
namespace {

constexpr base::TimeMs kExpireEveryMs = 60 * 1000;
// Above any command's records: a report of 16 tasks, each with ten reasons and all its overrides.
constexpr std::size_t kBytesPerCommand = 512 * 1024;
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
    engine.state_.clusters.merge(core::initial_state(clock.now_ms()).clusters);
    Batch batch;
    core::Effects effects;
    effects.changed_records.insert({core::RecordKind::kCluster, core::kDefaultCluster});
    engine.add(batch, std::move(effects));
    if (auto status = engine.commit(batch.writes); !status) return base::fail(status.error());
  }
  return engine;
}

void CoreEngine::set_observer(StateObserver* observer) {
  observer_ = observer;
  if (observer_ != nullptr) observer_->on_loaded(state_);
}

std::optional<base::Error> CoreEngine::trouble() const {
  if (writable_ && !failed_) return std::nullopt;
  return refusal();
}

// While the store refuses writes, an agent that goes away must still be noticed: that touches no
// record.
bool CoreEngine::takes(const core::Command& command) const {
  return !failed_ && (writable_ || std::holds_alternative<core::DisconnectInstance>(command));
}

void CoreEngine::run(std::vector<PendingCommand> commands) {
  const core::Context context{clock_->now_ms(), prng_};
  Batch batch;
  for (PendingCommand& pending : commands) {
    if (!takes(pending.command)) {
      batch.answers.push_back({std::move(pending.done), base::fail(refusal())});
      continue;
    }
    note_connection(batch, pending.command);
    auto outcome = core::apply(state_, pending.command, context);
    if (!outcome) {
      batch.answers.push_back({std::move(pending.done), base::fail(outcome.error())});
      continue;
    }
    add(batch, std::move(outcome->effects));
    batch.answers.push_back({std::move(pending.done), std::move(outcome->reply)});
    if (may_be_full(batch)) flush(batch);
  }
  flush(batch);
}

void CoreEngine::add(Batch& batch, core::Effects effects) const {
  for (const core::RecordRef& ref : effects.changed_records) {
    std::string key = codec::record_key(ref);
    std::optional<std::string> value = codec::encode_record(state_, ref);
    const std::size_t bytes = key.size() + (value ? value->size() : 0);
    const auto [at, fresh] = batch.writes.try_emplace(std::move(key));
    if (!fresh) batch.bytes -= at->first.size() + (at->second ? at->second->size() : 0);
    at->second = std::move(value);
    batch.bytes += bytes;
  }
  for (auto& [instance_id, task_ids] : effects.notify_tasks) {
    batch.effects.notify_tasks[instance_id].merge(task_ids);
  }
  batch.effects.changed_records.merge(effects.changed_records);
  batch.effects.dismissed_instances.merge(effects.dismissed_instances);
}

// Asked before the next command changes the state, because the answers of this batch show the
// state.
bool CoreEngine::may_be_full(const Batch& batch) const {
  const ports::StoreLimits limits = store_->limits();
  return batch.writes.size() + kRecordsPerCommand > limits.writes_per_commit ||
         batch.bytes + kBytesPerCommand > limits.bytes_per_commit;
}

void CoreEngine::flush(Batch& batch) {
  if (auto status = commit(batch.writes); !status) {
    const base::Error cause = status.error();
    roll_back(cause, batch);
    const bool too_large = cause.code == base::ErrorCode::kLimitExceeded && !failed_;
    for (Answer& answer : batch.answers) answer.reply = base::fail(too_large ? cause : refusal());
  } else {
    if (observer_ != nullptr && !batch.effects.changed_records.empty()) {
      observer_->on_stored(state_, batch.effects);
    }
    const bool told =
        !batch.effects.notify_tasks.empty() || !batch.effects.dismissed_instances.empty();
    if (sink_ != nullptr && told) sink_->on_effects(state_, batch.effects);
  }
  for (const Answer& answer : batch.answers) {
    if (answer.done) answer.done(answer.reply, state_);
  }
  batch = {};
}

// In one commit; only what Expire removes may need several.
base::Status CoreEngine::commit(const Writes& writes) {
  const ports::StoreLimits limits = store_->limits();
  std::vector<ports::StoreWrite> part;
  std::size_t bytes = 0;
  const auto store_part = [&]() -> base::Status {
    if (part.empty()) return {};
    auto revision = store_->commit(part, revision_);
    if (!revision) return base::fail(revision.error());
    revision_ = *revision;
    part.clear();
    bytes = 0;
    return {};
  };
  for (const auto& [key, value] : writes) {
    const std::size_t size = key.size() + (value ? value->size() : 0);
    if (part.size() + 1 > limits.writes_per_commit || bytes + size > limits.bytes_per_commit) {
      if (auto status = store_part(); !status) return status;
    }
    part.push_back({key, value});
    bytes += size;
  }
  return store_part();
}

void CoreEngine::note_connection(Batch& batch, const core::Command& command) const {
  const auto changes = [&](const std::string& instance_id) {
    const auto known = state_.instances.find(instance_id);
    if (known == state_.instances.end()) return;  // a refused commit takes it away altogether
    batch.connections_before.try_emplace(
        instance_id, Connection{known->second.agent_connected, known->second.connection_epoch});
  };
  if (const auto* hello = std::get_if<core::ConnectInstance>(&command)) {
    changes(hello->registration.id);
  } else if (const auto* dismissal = std::get_if<core::DeregisterInstance>(&command)) {
    changes(dismissal->instance_id);
  } else if (const auto* gone = std::get_if<core::DisconnectInstance>(&command)) {
    batch.disconnects.push_back(*gone);
  }
}

void CoreEngine::roll_back(const base::Error& cause, const Batch& batch) {
  const bool too_large = cause.code == base::ErrorCode::kLimitExceeded;
  if (cause.code != base::ErrorCode::kUnavailable && !too_large) {
    failed_ = cause;
    base::log::error("the store's state is unknown, the control plane stops: {}", cause.message);
    return;
  }
  if (too_large) {
    base::log::error("a batch was refused, because the store takes less at once: {}",
                     cause.message);
  } else {
    writable_ = false;
    refused_because_ = cause.message;
    base::log::error("the store refuses writes, reads go on: {}", cause.message);
  }

  auto snapshot = store_->load();
  auto state = snapshot ? codec::decode_records(snapshot->records)
                        : base::Result<core::State>(base::fail(snapshot.error()));
  if (!state) {
    failed_ = state.error();
    base::log::error("the store cannot be read back, the control plane stops: {}",
                     state.error().message);
    return;
  }
  keep_connections(*state, batch);
  revision_ = snapshot->revision;
  state_ = std::move(*state);
  if (observer_ != nullptr) observer_->on_loaded(state_);
}

// Connections are facts of this moment, not of the store; but a hello that was refused has made none,
// and a refused dismissal has ended none.
void CoreEngine::keep_connections(core::State& state, const Batch& batch) const {
  for (auto& [id, instance] : state.instances) {
    const auto now = state_.instances.find(id);
    if (now == state_.instances.end()) continue;
    const auto before = batch.connections_before.find(id);
    const bool refused = before != batch.connections_before.end();
    instance.agent_connected = refused ? before->second.connected : now->second.agent_connected;
    instance.connection_epoch = refused ? before->second.epoch : now->second.connection_epoch;
    core::instance_changed(state, instance);
  }
  for (const core::DisconnectInstance& gone : batch.disconnects) {
    const auto found = state.instances.find(gone.instance_id);
    if (found != state.instances.end() && found->second.connection_epoch == gone.epoch) {
      found->second.agent_connected = false;
      core::instance_changed(state, found->second);
    }
  }
}

base::Error CoreEngine::refusal() const {
  if (failed_) {
    return {base::ErrorCode::kServer,
            fmt::format("the control plane has stopped: {}", failed_->message)};
  }
  return {
      base::ErrorCode::kServer,
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
      roll_back(revision.error(), {});
    }
  }
  const bool clock_went_back = now_ms < expired_at_ms_;
  if (writable_ && (clock_went_back || now_ms >= expired_at_ms_ + kExpireEveryMs)) {
    expired_at_ms_ = now_ms;
    // What it leaves because of its bound is done at the next tick.
    run({{core::Expire{}, [this](const base::Result<core::Reply>& reply, const core::State&) {
            if (reply && std::get<core::BoundedReply>(*reply).more) expired_at_ms_ = 0;
          }}});
  }
}

}  // namespace cotenant::server
