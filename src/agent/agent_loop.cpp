#include "agent/agent_loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "agent/action_runner.h"
#include "agent/agent_state.h"
#include "agent/event_queue.h"
#include "agent/labels.h"
#include "agent/registration.h"
#include "agent/server_dialog.h"
#include "agent/worker_pool.h"
#include "base/log.h"
#include "codec/agent_message.h"

namespace cotenant::agent {
namespace {

namespace log = base::log;
using base::ErrorCode;
using base::fail;
using base::Result;
using base::Status;
using base::TimeMs;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kWorkers = 16;
constexpr std::size_t kStoppers = 64;
constexpr std::size_t kPullers = 5;  // what the logic asks for at once, and the clean-up
constexpr milliseconds kWatchRetry{1000};

// Wall time that never jumps: deadlines and back-offs must not, and the engine's times only have to
// be near.
class LoopClock {
 public:
  TimeMs now_ms() const {
    return start_ms_ +
           std::chrono::duration_cast<milliseconds>(steady_clock::now() - start_).count();
  }

 private:
  const TimeMs start_ms_ = base::SystemClock().now_ms();
  const steady_clock::time_point start_ = steady_clock::now();
};

}  // namespace

class Agent::Loop {
 public:
  Loop(AgentOptions options, AgentPorts ports, AgentState state, std::string boot_id)
      : options_(std::move(options)),
        ports_(ports),
        state_(std::move(state)),
        instance_id_(state_.instance_id()),
        images_(options_.images, options_.data_dir, ports.images, wall_clock_),
        runner_(instance_id_, ports.runtime, ports.mps, ports.wiring, images_,
                [this](const std::string& image) {
                  events_->push([this, image] { logic_.note_pull_began(image, clock_.now_ms()); });
                }),
        streams_(ports.streams, options_.open_stream),
        logic_(options_.logic),
        dialog_(logic_, options_.resend_after.count(), std::move(boot_id), options_.link.server),
        link_(options_.link, options_.connect, std::make_shared<LinkEvents>(*this, events_),
              base::random_seed()) {}
  ~Loop() { stop(milliseconds(0)); }

  const std::string& instance_id() const { return instance_id_; }
  Status start();
  bool stop(milliseconds grace);

 private:
  // What the link and its sockets call. Sockets may outlive the loop: what they bring goes only as
  // far as the queue, which is closed by then.
  class LinkEvents final : public ServerLink::Handler {
   public:
    LinkEvents(Loop& loop, std::shared_ptr<EventQueue> events)
        : loop_(loop), events_(std::move(events)) {}
    Result<std::int64_t> prepare() override { return loop_.prepare(); }
    void opened(std::int64_t epoch, std::shared_ptr<ports::WebSocket> socket) override {
      events_->push([&loop = loop_, epoch, socket] { loop.opened(epoch, socket); });
    }
    void received(std::int64_t epoch, std::string_view text) override {
      events_->push([&loop = loop_, epoch, message = codec::decode_server_message(text)] {
        loop.received(epoch, message);
      });
    }
    void closed(std::int64_t epoch, std::string_view reason) override {
      events_->push([&loop = loop_, epoch, why = std::string(reason)] { loop.closed(epoch, why); });
    }

   private:
    Loop& loop_;
    const std::shared_ptr<EventQueue> events_;
  };

  void run();
  void watch(std::stop_token stop);
  Result<std::int64_t> prepare();  // link thread

  void opened(std::int64_t epoch, std::shared_ptr<ports::WebSocket> socket);
  void received(std::int64_t epoch, const Result<codec::ServerMessage>& message);
  void closed(std::int64_t epoch, const std::string& reason);

  void take_snapshot(TimeMs now_ms);
  void snapshot_taken(std::uint64_t token, Result<std::vector<ports::ContainerState>> containers,
                      std::vector<std::string> daemons);
  void dispatch(const Action& action);
  void clean_up_images(TimeMs now_ms);
  RegistrationInput registration_input(const ports::EngineInfo& engine);  // asks the driver
  void look_at_gpus(TimeMs now_ms);
  void gpus_seen(const core::InstanceRegistration& now);

  const AgentOptions options_;
  const AgentPorts ports_;
  AgentState state_;  // link thread, once started
  const std::string instance_id_;
  const LoopClock clock_;
  const std::shared_ptr<EventQueue> events_ = std::make_shared<EventQueue>();
  const base::SystemClock wall_clock_;
  ImageKeeper images_;
  ActionRunner runner_;
  StreamService streams_;

  // Link thread.
  std::vector<std::string> registration_warnings_;

  std::mutex registration_mutex_;
  std::optional<core::InstanceRegistration> registration_;  // as prepared last

  // Loop thread.
  AgentLogic logic_;
  ServerDialog dialog_;
  bool look_again_ = true;
  bool snapshot_running_ = false;
  bool engine_away_ = false;
  bool cleanup_running_ = false;
  bool link_started_ = false;
  milliseconds engine_retry_{0};
  TimeMs next_snapshot_ms_ = 0;
  TimeMs next_cleanup_ms_ = 0;
  TimeMs next_gpu_look_ms_ = 0;
  bool gpu_look_running_ = false;

  // The control plane has nothing reserved for what runs here: no hello before it is gone.
  std::atomic<bool> emptying_{false};
  std::uint64_t emptying_since_ = 0;  // loop thread: only a snapshot begun later counts
  std::atomic<bool> left_{false};     // deregistered: no hello any more

  std::atomic<bool> change_pending_{false};
  bool stopped_ = false;
  WorkerPool workers_{kWorkers};
  WorkerPool stoppers_{kStoppers};
  WorkerPool pullers_{kPullers};
  WorkerPool observer_{1};
  WorkerPool gpu_observer_{1};
  ServerLink link_;
  std::jthread watch_thread_;
  std::thread thread_;
};

Status Agent::Loop::start() {
  try {
    watch_thread_ = std::jthread([this](std::stop_token stop) { watch(stop); });
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::kUnavailable,
                std::string("agent: cannot start a thread: ") + error.what());
  }
  return {};
}

bool Agent::Loop::stop(milliseconds grace) {
  if (std::exchange(stopped_, true)) return true;
  watch_thread_.request_stop();  // first: it takes a moment to notice
  events_->close();
  if (thread_.joinable()) thread_.join();
  link_.stop();
  if (watch_thread_.joinable()) watch_thread_.join();
  const auto until = steady_clock::now() + grace;
  bool calm = true;
  runner_.stop_pulls();
  streams_.stop();
  for (WorkerPool* pool : {&observer_, &gpu_observer_, &workers_, &stoppers_, &pullers_}) {
    const auto left = until - steady_clock::now();
    calm = pool->shut_down(
               std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(left))) &&
           calm;
  }
  return calm;
}

void Agent::Loop::run() {
  while (!events_->closed()) {
    for (const EventQueue::Event& event : events_->take(options_.tick)) event();
    const TimeMs now_ms = clock_.now_ms();
    for (const Action& action : logic_.step(now_ms)) dispatch(action);
    dialog_.report(now_ms);
    clean_up_images(now_ms);
    look_at_gpus(now_ms);
    if (!snapshot_running_ && (now_ms >= next_snapshot_ms_ || (look_again_ && !engine_away_))) {
      take_snapshot(now_ms);
    }
  }
}

void Agent::Loop::take_snapshot(TimeMs now_ms) {
  look_again_ = false;
  snapshot_running_ = true;
  next_snapshot_ms_ = now_ms + options_.list_interval.count();
  observer_.post([this, token = logic_.begin_snapshot()] {
    std::vector<std::string> daemons = ports_.mps.running();
    Result<std::vector<ports::ContainerState>> containers =
        ports_.runtime.list(kInstanceLabel, instance_id_);
    events_->push([this, token, containers = std::move(containers), daemons = std::move(daemons)] {
      snapshot_taken(token, containers, daemons);
    });
  });
}

void Agent::Loop::snapshot_taken(std::uint64_t token,
                                 Result<std::vector<ports::ContainerState>> containers,
                                 std::vector<std::string> daemons) {
  snapshot_running_ = false;
  Snapshot snapshot;
  snapshot.daemons = std::move(daemons);
  if (containers) {
    if (std::exchange(engine_away_, false)) log::info("agent: the container engine is back");
    engine_retry_ = milliseconds(0);
    snapshot.containers = std::move(*containers);
  } else {
    if (!std::exchange(engine_away_, true)) {
      log::error(
          "agent: the container engine does not answer ({}); containers are left as they "
          "are until it does",
          containers.error().message);
      runner_.forget_engine();  // it may come back as another version
    }
    engine_retry_ =
        std::min(options_.engine_retry_max, std::max(milliseconds(100), engine_retry_ * 2));
    next_snapshot_ms_ = clock_.now_ms() + engine_retry_.count();
  }
  if (emptying_ && snapshot.containers && token > emptying_since_ && !logic_.busy()) {
    emptying_ = std::any_of(snapshot.containers->begin(), snapshot.containers->end(),
                            [](const ports::ContainerState& container) {
                              return container.phase == ports::ContainerPhase::kRunning;
                            });
  }
  logic_.observe(token, std::move(snapshot));
  // The hello is to carry what runs here, so there is none before we know.
  if (containers && !std::exchange(link_started_, true)) {
    if (const Status ok = link_.start(); !ok) log::error("{}", ok.error().message);
  }
}

void Agent::Loop::dispatch(const Action& action) {
  log::debug("agent: {}", describe(action));
  const bool is_pull = std::holds_alternative<PullImage>(action.what);
  const bool is_stop = std::holds_alternative<StopContainer>(action.what);
  WorkerPool& pool = is_pull ? pullers_ : is_stop ? stoppers_ : workers_;
  pool.post([this, action, is_pull] {
    const bool too_late = clock_.now_ms() > action.start_by_ms;
    const Status status =
        too_late ? fail(ErrorCode::kTimeout, "waited too long for a free thread; not begun")
                 : runner_.run(action);
    if (!status) {
      log::warn("agent: {}: {}", describe(action), status.error().message);
    } else if (!is_pull && !std::holds_alternative<ProbeDaemon>(action.what)) {
      log::info("agent: {}: done", describe(action));
    }
    events_->push([this, result = ActionResult{action.id, status}] {
      logic_.finish(result, clock_.now_ms());
      look_again_ = true;
    });
  });
}

void Agent::Loop::watch(std::stop_token stop) {
  const auto on_change = [this] {
    if (change_pending_.exchange(true)) return;
    events_->push([this] {
      change_pending_ = false;
      look_again_ = true;
    });
  };
  std::mutex mutex;
  std::condition_variable_any wake;
  while (!stop.stop_requested()) {
    const Status ended = ports_.runtime.watch(kInstanceLabel, instance_id_, on_change, stop);
    if (stop.stop_requested()) return;
    runner_.forget_engine();  // it may come back as another version, or configured otherwise
    // Snapshots find out and say so; meanwhile they see what this cannot.
    if (!ended) log::debug("agent: {}", ended.error().message);
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, kWatchRetry, [] { return false; });
  }
}

Result<std::int64_t> Agent::Loop::prepare() {
  if (left_) {
    return fail(ErrorCode::kUnavailable,
                "the instance was deregistered; start the agent anew to register it again");
  }
  if (emptying_) {
    return fail(ErrorCode::kUnavailable,
                "containers of a former registration are being stopped; joining after that");
  }
  std::optional<core::InstanceRegistration> known;
  {
    const std::lock_guard lock(registration_mutex_);
    known = registration_;
  }
  const Result<ports::EngineInfo> engine = runner_.engine();
  // An engine that is away for a moment does not change what the machine is.
  if (!engine && !known) return fail(engine.error());
  if (engine) {
    RegistrationInput input = registration_input(*engine);
    input.known = std::move(known);
    BuiltRegistration built = build_registration(input);
    if (built.warnings != registration_warnings_) {
      for (const std::string& warning : built.warnings) log::warn("agent: {}", warning);
      registration_warnings_ = std::move(built.warnings);
    }
    const std::lock_guard lock(registration_mutex_);
    registration_ = std::move(built.registration);
  }
  return state_.next_epoch();
}

RegistrationInput Agent::Loop::registration_input(const ports::EngineInfo& engine) {
  return {instance_id_,
          options_.cluster,
          options_.agent_version,
          options_.api_port,
          engine,
          memory_mib_of_machine().value_or(0),
          std::thread::hardware_concurrency(),
          cpu_architecture_of_machine(),
          ports_.driver.driver(),
          ports_.driver.gpus(),
          find_program(options_.mps_control_binary)};
}

void Agent::Loop::look_at_gpus(TimeMs now_ms) {
  if (now_ms < next_gpu_look_ms_ || gpu_look_running_ || !dialog_.synced()) return;
  next_gpu_look_ms_ = now_ms + options_.gpu_interval.count();
  gpu_look_running_ = true;
  gpu_observer_.post([this] {
    RegistrationInput input = registration_input({});
    {
      const std::lock_guard lock(registration_mutex_);
      input.known = registration_;
    }
    events_->push([this, now = build_registration(input).registration] {
      gpu_look_running_ = false;
      gpus_seen(now);
    });
  });
}

// A new connection tells the control plane: its hello says what the machine is.
void Agent::Loop::gpus_seen(const core::InstanceRegistration& now) {
  std::vector<std::string> changes;
  {
    const std::lock_guard lock(registration_mutex_);
    if (registration_) changes = gpu_changes(*registration_, now);
  }
  if (changes.empty() || !dialog_.synced()) return;
  for (const std::string& change : changes) {
    log::warn("agent: {}; containers that run are left as they are", change);
  }
  dialog_.hang_up("the machine's GPUs have changed");
}

void Agent::Loop::opened(std::int64_t epoch, std::shared_ptr<ports::WebSocket> socket) {
  core::InstanceRegistration registration;
  {
    const std::lock_guard lock(registration_mutex_);
    registration = *registration_;
  }
  dialog_.opened(epoch, std::move(registration), std::move(socket));
}

void Agent::Loop::received(std::int64_t epoch, const Result<codec::ServerMessage>& message) {
  const ServerDialog::Heard heard = dialog_.received(epoch, message);
  for (codec::ServerStream& stream : dialog_.take_streams()) {
    streams_.open(stream.stream_id, logic_.runtime_id_of(stream.container_id),
                  std::move(stream.request));
  }
  switch (heard) {
    case ServerDialog::Heard::kAccepted:
      log::info("agent: connected to {} as instance {}", options_.link.server, instance_id_);
      return link_.note_accepted();
    case ServerDialog::Heard::kRefused:
      link_.note_refused();  // first: the link waits for nothing else once it is closed
      return dialog_.hang_up("refused");
    case ServerDialog::Heard::kDismissed:
      left_ = true;
      [[fallthrough]];
    case ServerDialog::Heard::kStopFirst:
      emptying_since_ = logic_.begin_snapshot();
      look_again_ = true;
      emptying_ = true;
      return dialog_.hang_up("refused");
    case ServerDialog::Heard::kNothing:
      return;
  }
}

void Agent::Loop::closed(std::int64_t epoch, const std::string& reason) {
  if (!dialog_.closed(epoch)) return;
  log::warn("agent: the connection to {} has ended: {}", options_.link.server, reason);
}

void Agent::Loop::clean_up_images(TimeMs now_ms) {
  if (next_cleanup_ms_ == 0) next_cleanup_ms_ = now_ms + options_.images.cleanup.interval_ms;
  // Before the control plane has been heard, nobody knows what is wanted.
  if (now_ms < next_cleanup_ms_ || !dialog_.synced() || cleanup_running_) return;
  next_cleanup_ms_ = now_ms + options_.images.cleanup.interval_ms;
  cleanup_running_ = true;
  pullers_.post([this, wanted = logic_.wanted_images()] {
    images_.clean_up(wanted);
    events_->push([this] { cleanup_running_ = false; });
  });
}

Agent::Agent(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Agent::~Agent() = default;

Result<std::unique_ptr<Agent>> Agent::create(AgentOptions options, AgentPorts ports) {
  base::Prng prng(base::random_seed());
  Result<AgentState> state = AgentState::open(options.data_dir, prng);
  if (!state) return fail(state.error());
  Result<std::string> boot_id = read_boot_id();
  if (!boot_id) return fail(boot_id.error());
  return std::unique_ptr<Agent>(new Agent(
      std::make_unique<Loop>(std::move(options), ports, std::move(*state), std::move(*boot_id))));
}

const std::string& Agent::instance_id() const {
  return loop_->instance_id();
}
Status Agent::start() {
  return loop_->start();
}
bool Agent::stop(milliseconds grace) {
  return loop_->stop(grace);
}

}  // namespace cotenant::agent
