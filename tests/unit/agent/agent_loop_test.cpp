#include "agent/agent_loop.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "agent/labels.h"
#include "codec/agent_message.h"
#include "fakes/fake_container_runtime.h"
#include "fakes/fake_container_streams.h"
#include "fakes/fake_gpu_driver.h"
#include "fakes/fake_gpu_wiring.h"
#include "fakes/fake_image_store.h"
#include "fakes/fake_mps_control.h"
#include "logic_world.h"

namespace cotenant::agent {
namespace {

using codec::AgentHello;
using codec::AgentObserved;
using core::ContainerStatus;
using fakes::FakeContainerRuntime;
using fakes::FakeMpsControl;
using std::chrono::milliseconds;

constexpr const char* kGpu = "GPU-00000000-0000-0000-0000-000000000001";

// The control plane's side of the protocol, in process.
class FakeServer {
 public:
  ~FakeServer() {
    for (std::thread& thread : threads_) thread.join();
  }

  Connector connector() {
    return [this](std::shared_ptr<ports::WebSocketListener> listener)
               -> base::Result<std::shared_ptr<ports::WebSocket>> {
      const std::lock_guard lock(mutex_);
      ++attempts_;
      revision_ = 0;
      if (away_) return base::fail(base::ErrorCode::kUnavailable, "nobody listens");
      socket_ = std::make_shared<Socket>(*this, listener);
      listener->on_open(socket_);
      return socket_;
    };
  }

  // Waits for a frame that `wanted` takes; others are skipped.
  template <class Frame>
  Frame expect(const std::function<bool(const Frame&)>& wanted = [](const Frame&) {
    return true;
  }) {
    std::unique_lock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (true) {
      while (!frames_.empty()) {
        const auto message = codec::decode_agent_message(frames_.front());
        frames_.pop_front();
        if (!message) {
          ADD_FAILURE() << message.error().message;
          continue;
        }
        if (const auto* frame = std::get_if<Frame>(&*message); frame != nullptr && wanted(*frame)) {
          return *frame;
        }
      }
      if (wake_.wait_until(lock, until) == std::cv_status::timeout) break;
    }
    ADD_FAILURE() << "the frame did not come";
    return {};
  }

  AgentObserved expect_status(const std::string& name, ContainerStatus status) {
    return expect<AgentObserved>([&](const AgentObserved& frame) {
      for (const core::TaskObservation& task : frame.tasks) {
        for (const core::ContainerObservation& container : task.containers) {
          if (container.name == name && container.status == status) return true;
        }
      }
      return false;
    });
  }

  void send(const codec::ServerMessage& message) { send_text(codec::encode(message)); }
  void send_text(const std::string& text) {
    if (const auto listener = current()) listener->on_text(text);
  }
  void desire(std::vector<core::DesiredTask> tasks) {
    std::int64_t revision = 0;
    {
      const std::lock_guard lock(mutex_);
      revision = ++revision_;
    }
    send(codec::ServerDesired{revision, true, std::move(tasks), {}});
  }
  void drop() {
    if (const auto listener = take()) listener->on_closed("dropped");
  }
  void set_away(bool away) {
    const std::lock_guard lock(mutex_);
    away_ = away;
  }
  int attempts() const {
    const std::lock_guard lock(mutex_);
    return attempts_;
  }
  std::string closed_with() const {
    const std::lock_guard lock(mutex_);
    return closed_with_;
  }

 private:
  class Socket final : public ports::WebSocket {
   public:
    Socket(FakeServer& server, std::shared_ptr<ports::WebSocketListener> listener)
        : server_(server), listener_(std::move(listener)) {}
    void send(std::string text) override {
      const std::lock_guard lock(server_.mutex_);
      server_.frames_.push_back(std::move(text));
      server_.wake_.notify_all();
    }
    void send_binary(std::string data) override { send(std::move(data)); }
    std::size_t queued_bytes() const override { return 0; }
    void set_reading(bool) override {}
    // As the real one: on_closed comes from another thread.
    void close(std::string reason) override {
      const std::lock_guard lock(server_.mutex_);
      server_.closed_with_ = reason;
      if (listener_ == nullptr) return;
      server_.threads_.emplace_back(
          [listener = std::exchange(listener_, nullptr), reason] { listener->on_closed(reason); });
    }
    std::shared_ptr<ports::WebSocketListener> listener() const { return listener_; }
    std::shared_ptr<ports::WebSocketListener> take() { return std::exchange(listener_, nullptr); }

   private:
    FakeServer& server_;
    std::shared_ptr<ports::WebSocketListener> listener_;
  };

  std::shared_ptr<ports::WebSocketListener> current() {
    const std::lock_guard lock(mutex_);
    return socket_ == nullptr ? nullptr : socket_->listener();
  }
  std::shared_ptr<ports::WebSocketListener> take() {
    const std::lock_guard lock(mutex_);
    return socket_ == nullptr ? nullptr : socket_->take();
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::string> frames_;
  std::shared_ptr<Socket> socket_;
  std::vector<std::thread> threads_;
  std::string closed_with_;
  std::int64_t revision_ = 0;  // of the desired states of one connection
  int attempts_ = 0;
  bool away_ = false;
};

class AgentLoopTest : public testing::Test {
 protected:
  AgentLoopTest() {
    std::string pattern = testing::TempDir() + "agent-loop-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    driver_.set_gpus({fakes::FakeGpuDriver::l4(kGpu)});
  }
  ~AgentLoopTest() override {
    agent_.reset();
    std::filesystem::remove_all(folder_);
  }

  void start_agent(const std::function<void(AgentOptions&)>& change = [](AgentOptions&) {}) {
    AgentOptions options;
    options.connect = server_.connector();
    options.link.server = "the fake server";
    options.link.retry_min = milliseconds(5);
    options.link.retry_max = milliseconds(20);
    options.data_dir = folder_ + "/data";
    options.mps_control_binary = "/bin/sh";
    options.list_interval = milliseconds(50);
    options.tick = milliseconds(10);
    options.engine_retry_max = milliseconds(50);
    change(options);
    auto agent = Agent::create(options, {runtime_, images_, streams_, driver_, mps_, wiring_});
    ASSERT_TRUE(agent) << agent.error().message;
    agent_ = std::move(*agent);
    ASSERT_TRUE(agent_->start());
  }

  // Polls until `condition` holds.
  static void eventually(const std::function<bool()>& condition, const char* what) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << what;
      std::this_thread::yield();
    }
  }

  std::string folder_;
  FakeContainerRuntime runtime_;
  fakes::FakeImageStore images_;
  fakes::FakeContainerStreams streams_;
  fakes::FakeGpuDriver driver_;
  FakeMpsControl mps_;
  fakes::FakeGpuWiring wiring_;
  FakeServer server_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentLoopTest, RegistersRunsAndReports) {
  start_agent();
  const auto hello = server_.expect<AgentHello>();
  EXPECT_EQ(hello.registration.id, agent_->instance_id());
  EXPECT_EQ(hello.registration.cluster, "default");
  EXPECT_EQ(hello.registration.cpu_units, 4096);
  EXPECT_EQ(hello.registration.gpus.size(), 1u);
  EXPECT_TRUE(hello.registration.attributes.contains("ecs.capability.gpu-sharing-mps"));
  EXPECT_EQ(hello.epoch, 1);
  EXPECT_FALSE(hello.boot_id.empty());

  server_.desire({task("t", {sharing("web", kGpu)})});
  server_.expect_status("web", ContainerStatus::kRunning);
  const auto container = runtime_.find_named("web");
  ASSERT_TRUE(container);
  EXPECT_EQ(container->labels.at(kInstanceLabel), agent_->instance_id());
  EXPECT_GE(mps_.calls(FakeMpsControl::Call::kProbe), 1);

  runtime_.exit_container(container->id, 7);
  const AgentObserved observed = server_.expect_status("web", ContainerStatus::kStopped);
  ASSERT_EQ(observed.tasks.size(), 1u);
  EXPECT_EQ(observed.tasks[0].containers[0].exit_code, 7);
}

TEST_F(AgentLoopTest, HelloCarriesEverythingAfterAReconnect) {
  start_agent();
  server_.expect<AgentHello>();
  server_.desire({task("t", {plain("web")})});
  server_.expect_status("web", ContainerStatus::kRunning);
  server_.drop();
  const auto hello = server_.expect<AgentHello>();
  EXPECT_EQ(hello.epoch, 2);
  ASSERT_EQ(hello.observed.size(), 1u);
  EXPECT_EQ(hello.observed[0].containers[0].status, ContainerStatus::kRunning);
}

TEST_F(AgentLoopTest, ADriverThatDiesIsToldAndSoIsItsReturn) {
  start_agent([](AgentOptions& options) { options.gpu_interval = milliseconds(20); });
  server_.expect<AgentHello>();
  server_.desire({task("t", {sharing("web", kGpu)})});
  server_.expect_status("web", ContainerStatus::kRunning);
  driver_.set_error(base::Error{base::ErrorCode::kUnavailable, "no driver"});
  const auto dead = server_.expect<AgentHello>();
  ASSERT_EQ(dead.registration.gpus.size(), 1u);
  EXPECT_EQ(dead.registration.gpus[0].unavailable, "the driver does not answer: no driver");
  ASSERT_EQ(dead.observed.size(), 1u);
  EXPECT_EQ(dead.observed[0].containers[0].status, ContainerStatus::kRunning);
  server_.desire({task("t", {sharing("web", kGpu)})});

  driver_.set_error(std::nullopt);
  const auto back = server_.expect<AgentHello>();
  ASSERT_EQ(back.registration.gpus.size(), 1u);
  EXPECT_EQ(back.registration.gpus[0].unavailable, "");
  EXPECT_EQ(runtime_.calls(FakeContainerRuntime::Call::kStop), 0);
}

TEST_F(AgentLoopTest, SendsAgainWhatNobodyAcknowledged) {
  start_agent([](AgentOptions& options) { options.resend_after = milliseconds(30); });
  server_.expect<AgentHello>();
  server_.desire({task("t", {plain("web")})});
  const AgentObserved first = server_.expect_status("web", ContainerStatus::kRunning);
  const AgentObserved second = server_.expect_status("web", ContainerStatus::kRunning);
  EXPECT_GT(second.seq, first.seq);
}

TEST_F(AgentLoopTest, ContainersOutliveTheAgentAndTheNextOneTakesOver) {
  start_agent();
  server_.expect<AgentHello>();
  const std::vector<core::DesiredTask> desired = {task("t", {sharing("web", kGpu)})};
  server_.desire(desired);
  server_.expect_status("web", ContainerStatus::kRunning);
  const std::string instance_id = agent_->instance_id();
  EXPECT_TRUE(agent_->stop());
  agent_.reset();
  ASSERT_EQ(runtime_.containers().size(), 1u);
  EXPECT_EQ(runtime_.containers()[0].phase, ports::ContainerPhase::kRunning);
  EXPECT_EQ(mps_.running().size(), 1u);

  start_agent();
  const auto hello = server_.expect<AgentHello>();
  EXPECT_EQ(hello.registration.id, instance_id);
  EXPECT_GT(hello.epoch, 1);
  ASSERT_EQ(hello.observed.size(), 1u) << "known by its labels";
  server_.desire(desired);
  core::DesiredTask stopping = desired[0];
  stopping.stop = true;
  server_.send(codec::ServerDesired{2, false, {stopping}, {}});
  server_.expect_status("web", ContainerStatus::kStopped);
  EXPECT_EQ(runtime_.starts_of(runtime_.containers()[0].id), 1);
  EXPECT_EQ(runtime_.stop_timeout_of(runtime_.containers()[0].id), 30);
}

TEST_F(AgentLoopTest, WithoutItsControlPlaneAnEssentialExitStillEndsTheTask) {
  start_agent();
  server_.expect<AgentHello>();
  server_.desire({task("t", {plain("main"), plain("side", false)})});
  server_.expect_status("main", ContainerStatus::kRunning);
  eventually([&] { return runtime_.find_named("side")->phase == ports::ContainerPhase::kRunning; },
             "side runs");
  server_.set_away(true);
  server_.drop();
  runtime_.exit_container(runtime_.find_named("main")->id, 1);
  eventually([&] { return runtime_.find_named("side")->phase == ports::ContainerPhase::kStopped; },
             "side is stopped");
}

TEST_F(AgentLoopTest, AnEngineThatGoesAwayChangesNothing) {
  start_agent();
  server_.expect<AgentHello>();
  server_.desire({task("t", {plain("web")})});
  server_.expect_status("web", ContainerStatus::kRunning);
  runtime_.set_away(true);
  const int before = runtime_.calls(FakeContainerRuntime::Call::kList);
  eventually([&] { return runtime_.calls(FakeContainerRuntime::Call::kList) > before + 2; },
             "it is asked again");
  runtime_.set_away(false);
  server_.desire({task("t", {plain("web")}), task("u", {plain("second")})});
  server_.expect_status("second", ContainerStatus::kRunning);
  EXPECT_EQ(runtime_.starts_of(runtime_.find_named("web")->id), 1);
  EXPECT_EQ(runtime_.calls(FakeContainerRuntime::Call::kStop), 0);
}

TEST_F(AgentLoopTest, SlowStopsHoldNobodyUp) {
  start_agent();
  server_.expect<AgentHello>();
  std::vector<core::DesiredTask> desired;
  for (int i = 0; i < 20; ++i) {
    desired.push_back(task(fmt::format("t{}", i), {plain(fmt::format("c{}x", i))}));
  }
  server_.desire(desired);
  for (int i = 0; i < 20; ++i) {
    eventually(
        [&] {
          const auto container = runtime_.find_named(fmt::format("-c{}x-", i));
          return container && container->phase == ports::ContainerPhase::kRunning;
        },
        "all run");
  }
  runtime_.hold(FakeContainerRuntime::Call::kStop);
  for (core::DesiredTask& one : desired) one.stop = true;
  server_.desire(desired);
  eventually([&] { return runtime_.calls(FakeContainerRuntime::Call::kStop) == 20; },
             "all stops at once");
  desired.push_back(task("new", {plain("new")}));
  server_.desire(desired);
  server_.expect_status("new", ContainerStatus::kRunning);
  EXPECT_FALSE(agent_->stop(milliseconds(1))) << "stops still run";
  runtime_.release(FakeContainerRuntime::Call::kStop);
}

TEST_F(AgentLoopTest, ALostCreateAnswerMakesNoSecondContainer) {
  runtime_.lose_next_create_answer();
  start_agent();
  server_.expect<AgentHello>();
  server_.desire({task("t", {plain("web")})});
  server_.expect_status("web", ContainerStatus::kRunning);
  EXPECT_EQ(runtime_.containers().size(), 1u);
}

TEST_F(AgentLoopTest, ReportsWhyAContainerCannotBeWired) {
  wiring_.set_error(base::Error{base::ErrorCode::kUnavailable, "install the toolkit"});
  start_agent();
  server_.expect<AgentHello>();
  server_.desire({task("t", {sharing("web", kGpu)})});
  const AgentObserved observed = server_.expect_status("web", ContainerStatus::kStopped);
  EXPECT_EQ(observed.tasks[0].containers[0].reason,
            "CannotCreateContainerError: install the toolkit");
}

TEST_F(AgentLoopTest, ARefusalIsTriedAgainLater) {
  start_agent([](AgentOptions& options) { options.link.refused_retry = milliseconds(60); });
  server_.expect<AgentHello>();
  server_.send(codec::ServerRefused{"no such cluster"});
  EXPECT_EQ(server_.expect<AgentHello>().epoch, 2);
  EXPECT_EQ(server_.closed_with(), "refused");
}

TEST_F(AgentLoopTest, ARefusalWaitsLongerThanALostConnection) {
  start_agent([](AgentOptions& options) { options.link.refused_retry = std::chrono::hours(1); });
  server_.expect<AgentHello>();
  server_.send(codec::ServerRefused{"no such cluster"});
  eventually([&] { return server_.closed_with() == "refused"; }, "it closes");
  const int lists = runtime_.calls(FakeContainerRuntime::Call::kList);
  eventually([&] { return runtime_.calls(FakeContainerRuntime::Call::kList) > lists + 3; },
             "it lives on");
  EXPECT_EQ(server_.attempts(), 1);
}

// Nothing is reserved for what runs: it is stopped, and there is no hello before it is gone.
TEST_F(AgentLoopTest, StopsEverythingBeforeItJoinsAgain) {
  start_agent();
  server_.expect<AgentHello>();
  server_.desire({task("t", {sharing("web", kGpu)})});
  server_.expect_status("web", ContainerStatus::kRunning);
  server_.send(codec::ServerRefused{"it was deregistered", true, false});
  const auto hello = server_.expect<AgentHello>();
  const auto container = runtime_.find_named("web");
  EXPECT_TRUE(!container || container->phase == ports::ContainerPhase::kStopped);
  for (const core::TaskObservation& seen : hello.observed) {
    for (const core::ContainerObservation& part : seen.containers) {
      EXPECT_NE(part.status, ContainerStatus::kRunning);
    }
  }
}

TEST_F(AgentLoopTest, AnInstanceThatWasDeregisteredStopsItsContainersAndStaysAway) {
  start_agent();
  server_.expect<AgentHello>();
  server_.desire({task("t", {sharing("web", kGpu)})});
  server_.expect_status("web", ContainerStatus::kRunning);
  server_.send(codec::ServerRefused{"it was deregistered", true, true});
  eventually(
      [&] {
        const auto container = runtime_.find_named("web");
        return !container || container->phase == ports::ContainerPhase::kStopped;
      },
      "its container stops");
  const int lists = runtime_.calls(FakeContainerRuntime::Call::kList);
  eventually([&] { return runtime_.calls(FakeContainerRuntime::Call::kList) > lists + 3; },
             "it lives on");
  EXPECT_EQ(server_.attempts(), 1);
}

TEST_F(AgentLoopTest, AFrameThatIsNoneClosesTheConnection) {
  start_agent();
  server_.expect<AgentHello>();
  server_.send_text("{\"type\":\"desired\"}");
  EXPECT_EQ(server_.expect<AgentHello>().epoch, 2);
  EXPECT_EQ(server_.closed_with(), "revision: is missing");
}

TEST_F(AgentLoopTest, WaitsForTheEngineAndTheServer) {
  runtime_.set_away(true);
  server_.set_away(true);
  driver_.set_error(base::Error{base::ErrorCode::kUnavailable, "no driver"});
  start_agent();
  const auto asked = [&] { return runtime_.calls(FakeContainerRuntime::Call::kList) > 2; };
  eventually(asked, "the engine is asked");
  EXPECT_EQ(server_.attempts(), 0);
  runtime_.set_away(false);
  eventually([&] { return server_.attempts() > 2; }, "the server is tried");
  server_.set_away(false);
  const auto hello = server_.expect<AgentHello>();
  EXPECT_TRUE(hello.registration.gpus.empty());
  EXPECT_GT(hello.epoch, 2);
}

}  // namespace
}  // namespace cotenant::agent
