#include "sim/plane.h"

#include <algorithm>
#include <utility>

#include "codec/record.h"

namespace cotenant::sim {
namespace {

constexpr std::size_t kQueued = 256;
constexpr std::int64_t kBatch = 32;

}  // namespace

Plane::Plane(Env& env, SimStore& store, std::function<void()> on_batch)
    : env_(env), store_(store), on_batch_(std::move(on_batch)), clock_(env.scheduler) {
  store_.set_on_killed([this] { dead_ = true; });
}

Plane::~Plane() = default;

void Plane::start() {
  if (engine_ != nullptr) return;
  store_.set_writer_alive(true);
  dead_ = false;
  const auto records_before = store_.records();
  seed_ = env_.dice.next();
  auto engine = server::CoreEngine::load(store_, clock_, seed_);
  if (!engine) {
    env_.journal.note("plane: does not start: {}", engine.error().message);
    dead_ = false;
    env_.scheduler.after(1000, [this] { start(); });
    return;
  }
  if (dead_) {
    // Killed while it wrote its first record.
    dead_ = false;
    env_.scheduler.after(1000, [this] { start(); });
    return;
  }
  ++life_;
  loaded_ = store_.records();
  log_.clear();
  log_complete_ = true;
  engine_ = std::make_unique<server::CoreEngine>(std::move(*engine));
  hub_ = std::make_unique<server::AgentHub>(*this);
  engine_->set_effect_sink(hub_.get());
  env_.journal.note("plane: started with {} records", loaded_.size());
  on_batch_();
  tick();
}

void Plane::kill() {
  if (engine_ == nullptr) return;
  env_.journal.note("plane: killed");
  for (const auto& wire : std::exchange(wires_, {})) wire->kill(Wire::kPlane);
  queue_.clear();
  hub_.reset();
  engine_.reset();
  dead_ = false;
  env_.scheduler.after(env_.dice.between(200, 20'000), [this] { start(); });
}

std::shared_ptr<Wire> Plane::connect(const std::string& name,
                                     std::shared_ptr<ports::WebSocketListener> agent) {
  if (!up()) return nullptr;
  std::erase_if(wires_, [](const auto& wire) { return !wire->is_open(Wire::kPlane); });
  auto wire = std::make_shared<Wire>(env_, name);
  wires_.push_back(wire);
  wire->open(std::move(agent), hub_->accept({}));
  return wire;
}

base::Status Plane::post(core::Command command, server::CommandDone done) {
  if (!up()) return base::fail(base::ErrorCode::kUnavailable, "nobody listens");
  if (queue_.size() >= kQueued) return base::fail(base::ErrorCode::kThrottling, "full");
  enqueue(std::move(command), std::move(done));
  return {};
}

base::Status Plane::post_always(core::Command command, server::CommandDone done) {
  if (!up()) return base::fail(base::ErrorCode::kUnavailable, "nobody listens");
  enqueue(std::move(command), std::move(done));
  return {};
}

void Plane::enqueue(core::Command command, server::CommandDone done) {
  server::CommandDone while_alive;
  if (done) {
    while_alive = [this, done = std::move(done)](const base::Result<core::Reply>& reply,
                                                 const core::State& state) {
      if (!dead_) done(reply, state);
    };
  }
  queue_.push_back({std::move(command), std::move(while_alive)});
  if (queue_.size() > 1) return;  // the batch is due already
  env_.scheduler.after(env_.dice.between(0, 10), [this, life = life_] {
    if (life == life_ && engine_ != nullptr) run_batch();
  });
}

void Plane::run_batch() {
  const auto count = static_cast<std::ptrdiff_t>(
      std::min(queue_.size(), static_cast<std::size_t>(env_.dice.between(1, kBatch))));
  std::vector<server::PendingCommand> batch(std::make_move_iterator(queue_.begin()),
                                            std::make_move_iterator(queue_.begin() + count));
  queue_.erase(queue_.begin(), queue_.begin() + count);
  if (!queue_.empty()) {
    env_.scheduler.after(env_.dice.between(0, 10), [this, life = life_] {
      if (life == life_ && engine_ != nullptr) run_batch();
    });
  }
  for (const server::PendingCommand& pending : batch) {
    log_.push_back({pending.command, clock_.now_ms()});
  }
  engine_->run(std::move(batch));
  settle();
}

void Plane::tick() {
  const std::int64_t revision = store_.revision();
  engine_->tick();
  // A probe is no command, but then writes were refused before and the log has its gap.
  if (store_.revision() != revision) {
    log_.push_back({core::Expire{}, clock_.now_ms()});
  }
  settle();
  env_.scheduler.after(1000, [this, life = life_] {
    if (life == life_ && engine_ != nullptr) tick();
  });
}

void Plane::settle() {
  if (!dead_ && (!engine_->writable() || engine_->failed())) log_complete_ = false;
  // One that does not know what is stored stops by itself, and is started again.
  if (dead_ || engine_->failed()) return kill();
  on_batch_();
}

core::State Plane::replay() const {
  core::State state = std::move(*codec::decode_records(loaded_));
  base::Prng prng(seed_);
  for (const Applied& applied : log_) {
    (void)core::apply(state, applied.command, core::Context{applied.now_ms, prng});
  }
  return state;
}

}  // namespace cotenant::sim
