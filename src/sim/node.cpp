#include "sim/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "agent/action_runner.h"
#include "agent/agent_logic.h"
#include "agent/labels.h"
#include "agent/registration.h"
#include "agent/server_dialog.h"
#include "codec/agent_message.h"
#include "sim/container_gpus.h"

namespace cotenant::sim {
namespace {

using agent::label_of;
using base::TimeMs;
using ports::ContainerPhase;
using ports::ContainerState;

constexpr TimeMs kTickMs = 1000;
constexpr TimeMs kListMs = 5000;
constexpr TimeMs kResendMs = 15'000;
// Short, so that clean-up is part of every run.
constexpr agent::LogicOptions kLogic{60'000, 30'000};

}  // namespace

struct Node::Agent {
  explicit Agent(const std::string& boot) : dialog(logic, kResendMs, boot, "plane") {}

  agent::AgentLogic logic{kLogic};
  agent::ServerDialog dialog;
  bool snapshot_running = false;
  bool look_again = true;
  bool engine_seen = false;  // no hello before it is known what runs here
  TimeMs next_snapshot_ms = 0;
  // As in the agent's loop: nothing is reserved for what runs here, no hello before it is gone; and
  // none at all once the instance was deregistered.
  bool emptying = false;
  std::uint64_t emptying_since = 0;
  bool left = false;
  std::shared_ptr<Wire> wire;
};

// An action on its way to the engine, and its answer back.
struct Node::Effect {
  agent::Action action;
  std::uint64_t life = 0;
  bool done = false;
  bool answered = false;
  base::Status status;
};

class Node::Connection final : public ports::WebSocketListener {
 public:
  Connection(Node& node, std::uint64_t life, std::int64_t epoch)
      : node_(node), life_(life), epoch_(epoch) {}
  void on_open(std::shared_ptr<ports::WebSocket> socket) override {
    node_.agent_->dialog.opened(epoch_, node_.registration_, std::move(socket));
  }
  void on_text(std::string_view text) override {
    if (life_ != node_.life_ || node_.agent_ == nullptr) return;
    const auto heard = node_.agent_->dialog.received(epoch_, codec::decode_server_message(text));
    using Heard = agent::ServerDialog::Heard;
    if (heard == Heard::kStopFirst || heard == Heard::kDismissed) {
      node_.agent_->emptying = true;
      node_.agent_->emptying_since = node_.agent_->logic.begin_snapshot();
      node_.agent_->look_again = true;
      node_.agent_->left = heard == Heard::kDismissed;
    }
    if (heard != Heard::kNothing && heard != Heard::kAccepted) {
      refused_ = true;
      node_.agent_->dialog.hang_up("refused");
    }
    node_.step();
  }
  void on_closed(std::string_view) override {
    if (life_ != node_.life_ || node_.agent_ == nullptr) return;
    node_.agent_->dialog.closed(epoch_);
    node_.agent_->wire.reset();
    node_.reconnect_later(refused_);
  }

 private:
  Node& node_;
  const std::uint64_t life_;
  const std::int64_t epoch_;
  bool refused_ = false;
};

Node::Node(Env& env, Plane& plane, core::InstanceRegistration registration)
    : env_(env),
      plane_(plane),
      whole_(std::move(registration)),
      registration_(whole_),
      wall_clock_(env.scheduler),
      // Where no file can be: what it forgets costs only that an image is never cleaned up.
      keeper_(agent::ImageOptions{}, "/dev/null/none", images_, wall_clock_) {}

Node::~Node() = default;

void Node::start_agent() {
  if (agent_ != nullptr) return;
  ++life_;
  env_.journal.note("{}: agent starts", id());
  agent_ = std::make_unique<Agent>(fmt::format("boot-{}", life_));
  tick(life_);
}

void Node::kill_agent() {
  if (agent_ == nullptr) return;
  env_.journal.note("{}: agent killed", id());
  if (agent_->wire) agent_->wire->kill(Wire::kAgent);
  agent_.reset();
  // The engine still creates, stops and removes what it was asked to. What is short is over before
  // another agent is up: it has happened by then, or never will. (A start that came true after the
  // next agent has looked, and whose container exits before that agent's own start, would run it
  // twice: no engine offers to start only what never ran.)
  const auto on_their_way = effects_;
  for (const auto& effect : on_their_way) {
    const auto& what = effect->action.what;
    const bool is_long = std::holds_alternative<agent::PullImage>(what) ||
                         std::holds_alternative<agent::CreateContainer>(what) ||
                         std::holds_alternative<agent::StopContainer>(what) ||
                         std::holds_alternative<agent::RemoveContainer>(what);
    if (is_long || effect->done) continue;
    if (fault(500)) {
      take_effect(effect);
    } else {
      effect->done = true;
      std::erase(effects_, effect);
    }
  }
  env_.scheduler.after(env_.dice.between(100, 20'000), [this] { start_agent(); });
}

void Node::reboot() {
  env_.journal.note("{}: the machine reboots", id());
  kill_agent();
  for (const auto& effect : effects_) effect->done = true;
  effects_.clear();
  exit_all(137);
  for (const std::string& uuid : mps_.running()) mps_.kill_daemon(uuid);
  if (fault(env_.faults.gpus_change)) change_gpus();
}

// While it was down somebody has taken a GPU out, or put it back; or the driver offers less memory than
// it did, or names them in another order.
void Node::change_gpus() {
  registration_ = whole_;
  auto& gpus = registration_.gpus;
  if (gpus.empty()) return;
  const std::size_t at =
      static_cast<std::size_t>(env_.dice.below(static_cast<std::int64_t>(gpus.size())));
  switch (env_.dice.below(4)) {
    case 0:
      gpus.erase(gpus.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      gpus[at].memory_mib = gpus[at].memory_mib.value_or(0) - env_.dice.below(14'000);
      break;
    case 2:
      std::reverse(gpus.begin(), gpus.end());
      break;
    default:
      break;  // all are there again
  }
  env_.journal.note("{}: has {} GPUs now", id(), gpus.size());
}

void Node::exit_all(int exit_code) {
  sync_clock();
  for (const ContainerState& state : runtime_.containers()) {
    if (state.phase == ContainerPhase::kRunning) runtime_.exit_container(state.id, exit_code);
  }
}

void Node::sync_clock() {
  runtime_.set_clock(env_.scheduler.now_ms());
}

void Node::cut_connection() {
  if (agent_ != nullptr && agent_->wire) agent_->wire->cut();
}

void Node::disturb() {
  const Faults& faults = env_.faults;
  const TimeMs now_ms = env_.scheduler.now_ms();
  sync_clock();
  if (fault(faults.connection_cut)) cut_connection();
  if (fault(faults.agent_killed)) kill_agent();
  if (fault(faults.machine_rebooted)) reboot();
  if (!away_ && fault(faults.engine_away)) {
    away_ = true;
    away_until_ms_ = now_ms + env_.dice.between(500, 30'000);
    runtime_.set_away(true);
    env_.journal.note("{}: the engine is away", id());
    // An engine without live-restore takes its containers along.
    if (fault(500)) exit_all(137);
  } else if (away_ && now_ms >= away_until_ms_) {
    away_ = false;
    runtime_.set_away(false);
  }
  const std::vector<ContainerState> containers = runtime_.containers();
  if (!containers.empty() && fault(faults.container_exits)) {
    const ContainerState& state = env_.dice.any(containers);
    if (state.phase == ContainerPhase::kRunning) {
      env_.journal.note("{}: {} exits", id(), state.name);
      runtime_.exit_container(state.id, static_cast<int>(env_.dice.below(3)), fault(100));
    }
  } else if (!containers.empty() && fault(faults.container_erased)) {
    // What ran, and vanished before anybody had seen it, cannot be told from new.
    const ContainerState& state = env_.dice.any(containers);
    const std::string container_id = label_of(state, agent::kContainerLabel);
    if (!ever_started_.contains(container_id) || seen_running_(container_id)) {
      env_.journal.note("{}: {} is erased", id(), state.name);
      runtime_.erase_container(state.id);
    }
  }
  const std::vector<std::string> daemons = mps_.running();
  if (!daemons.empty() && fault(faults.daemon_dies)) {
    env_.journal.note("{}: the daemon of {} dies", id(), daemons.front());
    mps_.kill_daemon(daemons.front());
  }
  repeat_report();
}

void Node::calm() {
  away_ = false;
  runtime_.set_away(false);
  // An agent whose GPUs are missed is refused until they are back; it asks again by itself. One that
  // is connected says what has come back in a new hello, as agent/agent_loop does.
  const bool changed = !agent::gpu_changes(registration_, whole_).empty();
  registration_ = whole_;
  start_agent();
  if (changed && agent_->wire) agent_->wire->cut();
  for (const auto& effect : effects_) {
    env_.scheduler.after(env_.dice.between(1, 5000), [this, effect] { take_effect(effect); });
  }
}

bool Node::idle() const {
  return std::all_of(effects_.begin(), effects_.end(), [](const auto& e) { return e->answered; });
}

std::vector<Node::Running> Node::running() const {
  std::vector<Running> found;
  for (const ContainerState& state : runtime_.containers()) {
    if (state.phase != ContainerPhase::kRunning) continue;
    found.push_back(
        {label_of(state, agent::kTaskLabel), label_of(state, agent::kContainerLabel), state.id});
  }
  return found;
}

std::set<std::string> Node::shared_gpus() const {
  std::set<std::string> uuids;
  for (const ContainerState& state : runtime_.containers()) {
    if (state.phase != ContainerPhase::kRunning || !is_sharing(state)) continue;
    for (const std::string& uuid : gpus_of(state)) uuids.insert(uuid);
  }
  return uuids;
}

// What is so now of one task, to be told again later. That a container has ended is not kept: an agent
// that dies before it could say so may be followed by one that starts it after all.
void Node::remember_report() {
  constexpr std::size_t kKept = 32;
  if (env_.faults.report_repeated == 0 || !fault(100)) return;
  std::vector<core::TaskObservation> seen = agent_->logic.observations();
  if (seen.empty()) return;
  core::TaskObservation report = env_.dice.any(seen);
  std::erase_if(report.containers, [](const core::ContainerObservation& container) {
    return container.status == core::ContainerStatus::kStopped;
  });
  if (old_reports_.size() < kKept) {
    old_reports_.push_back(std::move(report));
  } else {
    old_reports_[static_cast<std::size_t>(env_.dice.below(kKept))] = std::move(report);
  }
}

void Node::repeat_report() {
  if (old_reports_.empty() || !fault(env_.faults.report_repeated)) return;
  const core::TaskObservation& report = env_.dice.any(old_reports_);
  env_.journal.note("{}: an old report of task {} comes again", id(), report.task_id);
  (void)plane_.post(core::ObserveTasks{id(), {report}, {}}, {});
}

// --- The agent's loop ---

void Node::tick(std::uint64_t life) {
  if (life != life_ || agent_ == nullptr) return;
  step();
  env_.scheduler.after(kTickMs, [this, life] { tick(life); });
}

void Node::step() {
  const TimeMs now_ms = env_.scheduler.now_ms();
  for (const agent::Action& action : agent_->logic.step(now_ms)) begin(action);
  agent_->dialog.report(now_ms);
  remember_report();
  if (!agent_->snapshot_running && (now_ms >= agent_->next_snapshot_ms || agent_->look_again)) {
    take_snapshot();
  }
}

void Node::take_snapshot() {
  agent_->look_again = false;
  agent_->snapshot_running = true;
  agent_->next_snapshot_ms = env_.scheduler.now_ms() + kListMs;
  const std::uint64_t token = agent_->logic.begin_snapshot();
  const TimeMs asked_ms = env_.dice.between(1, fault(env_.faults.action_slow) ? 2000 : 20);
  env_.scheduler.after(asked_ms, [this, token, life = life_] {
    if (life != life_ || agent_ == nullptr) return;
    agent::Snapshot snapshot;
    snapshot.daemons = mps_.running();
    auto containers = runtime_.list(agent::kInstanceLabel, id());
    if (containers) snapshot.containers = std::move(*containers);
    env_.scheduler.after(env_.dice.between(1, 20), [this, token, life, snapshot] {
      if (life != life_ || agent_ == nullptr) return;
      agent_->snapshot_running = false;
      if (agent_->emptying && snapshot.containers && token > agent_->emptying_since &&
          !agent_->logic.busy()) {
        agent_->emptying = std::any_of(
            snapshot.containers->begin(), snapshot.containers->end(),
            [](const ContainerState& state) { return state.phase == ContainerPhase::kRunning; });
      }
      agent_->logic.observe(token, snapshot);
      if (snapshot.containers && !std::exchange(agent_->engine_seen, true)) connect(life);
      step();
    });
  });
}

void Node::connect(std::uint64_t life) {
  if (life != life_ || agent_ == nullptr || agent_->wire) return;
  if (agent_->left && !agent_->emptying) {
    // Somebody starts it anew, to have the instance back.
    kill_agent();
    return;
  }
  if (agent_->emptying) return reconnect_later(true);
  const std::int64_t epoch = ++epoch_;
  agent_->wire = plane_.connect(id(), std::make_shared<Connection>(*this, life, epoch));
  if (!agent_->wire) reconnect_later(false);
}

void Node::reconnect_later(bool refused) {
  env_.scheduler.after(refused ? env_.dice.between(15'000, 30'000) : env_.dice.between(100, 5000),
                       [this, life = life_] { connect(life); });
}

// --- Actions ---

void Node::begin(const agent::Action& action) {
  env_.journal.note("{}: {}", id(), agent::describe(action));
  for (const auto& other : effects_) {
    if (other->life == life_ && !other->done && other->action.id == action.id) {
      env_.journal.violation("{}: action {} was issued twice", id(), action.id);
    }
  }
  auto effect = std::make_shared<Effect>();
  effect->action = action;
  effect->life = life_;
  TimeMs delay_ms = env_.dice.between(1, 200);
  if (fault(env_.faults.action_slow)) delay_ms += env_.dice.between(500, 20'000);
  if (fault(env_.faults.action_very_slow)) delay_ms += env_.dice.between(100'000, 500'000);
  effects_.push_back(effect);
  env_.scheduler.after(delay_ms, [this, effect] { take_effect(effect); });
}

void Node::take_effect(const std::shared_ptr<Effect>& effect) {
  if (std::exchange(effect->done, true)) return;
  sync_clock();
  const bool is_probe = std::holds_alternative<agent::ProbeDaemon>(effect->action.what);
  if (fault(env_.faults.action_fails)) {
    const base::ErrorCode codes[] = {base::ErrorCode::kClient, base::ErrorCode::kUnavailable,
                                     base::ErrorCode::kTimeout, base::ErrorCode::kIo};
    if (fault(500)) (void)act(effect->action);
    effect->status = base::fail(codes[env_.dice.below(4)], "fault");
  } else if (!is_probe && fault(env_.faults.action_lies)) {
    effect->status = {};  // a probe that lies is beyond what the gate can tell
  } else {
    effect->status = act(effect->action);
  }
  const TimeMs delay_ms = env_.dice.between(1, 50);
  // The agent's own threads lose no answer; that of a pull is waited for as long as a registry takes.
  const bool is_pull = std::holds_alternative<agent::PullImage>(effect->action.what);
  if (!is_pull && fault(env_.faults.answer_lost)) {
    env_.scheduler.after(delay_ms, [this, effect] {
      effect->answered = true;
      std::erase(effects_, effect);
    });
    return;
  }
  answer(effect, delay_ms);
  if (fault(env_.faults.answer_doubled)) answer(effect, delay_ms + env_.dice.between(1, 3000));
}

void Node::answer(const std::shared_ptr<Effect>& effect, TimeMs delay_ms) {
  env_.scheduler.after(delay_ms, [this, effect] {
    effect->answered = true;
    std::erase(effects_, effect);
    if (effect->life != life_ || agent_ == nullptr) return;
    agent_->logic.finish({effect->action.id, effect->status}, env_.scheduler.now_ms());
    agent_->look_again = true;
    step();
  });
}

base::Status Node::act(const agent::Action& action) {
  ++effect_count_;
  check_before(action);
  // Made anew: an action outlives the agent that asked for it.
  const auto on_pull = [this, life = life_](const std::string& image) {
    if (life == life_ && agent_ != nullptr) {
      agent_->logic.note_pull_began(image, env_.scheduler.now_ms());
    }
  };
  agent::ActionRunner runner(id(), runtime_, mps_, wiring_, keeper_, on_pull);
  base::Status status = runner.run(action);
  if (status) {
    if (const auto* create = std::get_if<agent::CreateContainer>(&action.what)) {
      created_at_[create->plan.container.id] = effect_count_;
    } else if (const auto* probe = std::get_if<agent::ProbeDaemon>(&action.what)) {
      last_good_probe_[probe->gpu_uuid] = effect_count_;
    }
  }
  check_gpus();
  return status;
}

}  // namespace cotenant::sim
