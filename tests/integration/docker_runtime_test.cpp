// DockerRuntime against a real engine. COTENANT_TEST_DOCKER_HOST names it (unix:///...), and
// COTENANT_TEST_IMAGE an image on it that has /bin/sh (default bb:latest).
#include "adapters/docker_runtime.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_client.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using ports::ContainerPhase;
using ports::ContainerSpec;
using ports::ContainerState;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr const char* kLabel = "cotenant.instance";
constexpr seconds kDeadline{60};
constexpr milliseconds kPoll{50};

std::string from_environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

std::unique_ptr<DockerRuntime> connect(const std::string& endpoint) {
  auto client = net::make_http_client(endpoint);
  EXPECT_TRUE(client) << client.error().message;
  return std::make_unique<DockerRuntime>(
      std::shared_ptr<const ports::HttpClient>(std::move(*client)));
}

class DockerRuntimeIntegration : public testing::Test {
 protected:
  void SetUp() override {
    endpoint_ = from_environment("COTENANT_TEST_DOCKER_HOST", "");
    if (endpoint_.empty()) {
      GTEST_SKIP() << "COTENANT_TEST_DOCKER_HOST=unix:///... names no container engine";
    }
    image_ = from_environment("COTENANT_TEST_IMAGE", "bb:latest");
    static std::atomic<int> counter{0};
    instance_ = "docker-test-" + std::to_string(::getpid()) + "-" + std::to_string(++counter);
    runtime_ = connect(endpoint_);
  }

  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
    if (!runtime_) return;
    const auto left = runtime_->list(kLabel, instance_);
    if (!left) return;
    for (const ContainerState& container : *left) {
      EXPECT_TRUE(runtime_->stop(container.id, 0)) << container.name;
      EXPECT_TRUE(runtime_->remove(container.id)) << container.name;
    }
  }

  // On this machine; containers can mount it. Removed with the test.
  std::filesystem::path make_folder() {
    folder_ = std::filesystem::path(testing::TempDir()) / instance_;
    std::filesystem::create_directory(folder_);
    return folder_;
  }

  ContainerSpec shell(const std::string& name, const std::string& script) const {
    ContainerSpec spec;
    spec.name = instance_ + "-" + name;
    spec.image = image_;
    spec.entry_point = {"/bin/sh", "-c"};
    spec.command = {script};
    spec.labels = {{kLabel, instance_}, {"cotenant.container", name}};
    spec.network_mode = ports::NetworkMode::kNone;
    return spec;
  }

  std::string create(const ContainerSpec& spec) {
    const auto id = runtime_->create(spec);
    EXPECT_TRUE(id) << id.error().message;
    return id ? *id : "";
  }

  std::string create_and_start(const ContainerSpec& spec) {
    const std::string id = create(spec);
    const base::Status started = runtime_->start(id);
    EXPECT_TRUE(started) << started.error().message;
    return id;
  }

  std::optional<ContainerState> find(const std::string& id) {
    const auto all = runtime_->list(kLabel, instance_);
    EXPECT_TRUE(all) << all.error().message;
    if (!all) return std::nullopt;
    for (const ContainerState& container : *all) {
      if (container.id == id) return container;
    }
    return std::nullopt;
  }

  // Looks again and again until the container is in that state; the last look otherwise.
  ContainerState await(const std::string& id,
                       const std::function<bool(const ContainerState&)>& ready) {
    const auto deadline = steady_clock::now() + kDeadline;
    ContainerState last;
    do {
      if (const auto state = find(id)) last = *state;
      if (ready(last)) return last;
      std::this_thread::sleep_for(kPoll);
    } while (steady_clock::now() < deadline);
    ADD_FAILURE() << "container " << id << " did not get there in time";
    return last;
  }

  ContainerState await_stop(const std::string& id) {
    return await(id, [](const ContainerState& s) { return s.phase == ContainerPhase::kStopped; });
  }

  std::string endpoint_;
  std::string image_;
  std::string instance_;
  std::filesystem::path folder_;
  std::unique_ptr<DockerRuntime> runtime_;
};

TEST_F(DockerRuntimeIntegration, InfoDescribesTheEngine) {
  const auto info = runtime_->info();
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_FALSE(info->name.empty());
  EXPECT_FALSE(info->version.empty());
  EXPECT_GE(info->cpu_count, 1);
  EXPECT_GE(info->memory_mib, 64);
  EXPECT_FALSE(info->runtimes.empty());
}

TEST_F(DockerRuntimeIntegration, AContainersLife) {
  ContainerSpec spec =
      shell("life", "test \"$A\" = 'x=y z' && test \"$PWD\" = /tmp2 && exec sleep 600");
  spec.environment = {{"A", "x=y z"}};
  spec.working_directory = "/tmp2";
  const std::string id = create(spec);

  auto state = find(id);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->phase, ContainerPhase::kCreated);
  EXPECT_EQ(state->name, spec.name);
  EXPECT_EQ(state->image, image_);
  EXPECT_EQ(state->image_digest.find("sha256:"), 0U);
  EXPECT_EQ(state->labels, spec.labels);
  EXPECT_FALSE(state->exit_code);
  EXPECT_EQ(state->started_at_ms, 0);

  ASSERT_TRUE(runtime_->start(id));
  EXPECT_TRUE(runtime_->start(id));  // runs already
  state = find(id);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->phase, ContainerPhase::kRunning);
  EXPECT_GT(state->started_at_ms, 1700000000000);
  EXPECT_EQ(state->finished_at_ms, 0);
  EXPECT_FALSE(state->exit_code);

  const base::Status running = runtime_->remove(id);
  ASSERT_FALSE(running);
  EXPECT_EQ(running.error().code, ErrorCode::kClient);

  ASSERT_TRUE(runtime_->stop(id, 0));
  EXPECT_TRUE(runtime_->stop(id, 0));  // stopped already
  state = find(id);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->phase, ContainerPhase::kStopped);
  EXPECT_EQ(state->exit_code, 137);
  EXPECT_FALSE(state->oom_killed);
  EXPECT_EQ(state->error, "");
  EXPECT_GE(state->finished_at_ms, state->started_at_ms);

  EXPECT_TRUE(runtime_->remove(id));
  EXPECT_TRUE(runtime_->remove(id));  // gone already
  EXPECT_FALSE(find(id));
}

// 137 is that of the processes killed below.
TEST_F(DockerRuntimeIntegration, ExitCodes) {
  for (const int code : {0, 3, 255}) {
    const std::string text = std::to_string(code);
    const ContainerState state = await_stop(create_and_start(shell("exit" + text, "exit " + text)));
    EXPECT_EQ(state.exit_code, code);
    EXPECT_EQ(state.error, "");
    EXPECT_FALSE(state.oom_killed);
  }
}

TEST_F(DockerRuntimeIntegration, AProcessThatEndsOnSigtermExitsByItself) {
  const std::filesystem::path folder = make_folder();
  ContainerSpec spec =
      shell("polite", "trap 'exit 5' TERM; touch /shared/ready; while :; do sleep 0.05; done");
  spec.mounts = {{folder.string(), "/shared", false}};
  const std::string id = create_and_start(spec);
  // Before its trap is set, the first process of a container takes no notice of SIGTERM.
  await(id, [&](const ContainerState&) { return std::filesystem::exists(folder / "ready"); });
  const auto begin = steady_clock::now();
  ASSERT_TRUE(runtime_->stop(id, 600));
  EXPECT_LT(steady_clock::now() - begin, kDeadline);
  EXPECT_EQ(await_stop(id).exit_code, 5);
}

TEST_F(DockerRuntimeIntegration, AProcessThatIgnoresSigtermIsKilledAfterItsTimeout) {
  const std::string id = create_and_start(shell("stubborn", "trap '' TERM; exec sleep 600"));
  const auto begin = steady_clock::now();
  ASSERT_TRUE(runtime_->stop(id, 2));
  const auto took = steady_clock::now() - begin;
  EXPECT_GE(took, milliseconds(1900));
  EXPECT_LT(took, kDeadline);
  EXPECT_EQ(await_stop(id).exit_code, 137);
}

TEST_F(DockerRuntimeIntegration, AStartThatFailsKeepsTheEnginesText) {
  ContainerSpec spec = shell("broken", "");
  spec.entry_point = {"/no/such/program"};
  const std::string id = create(spec);
  const base::Status started = runtime_->start(id);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kClient);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "/no/such/program", started.error().message);
  const auto state = find(id);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->phase, ContainerPhase::kStopped);
  EXPECT_FALSE(state->exit_code);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "/no/such/program", state->error);
}

TEST_F(DockerRuntimeIntegration, ListsOnlyTheLabelsOwn) {
  const std::string mine = create(shell("mine", "exit 0"));
  ContainerSpec other = shell("other", "exit 0");
  other.labels[kLabel] = instance_ + "x";  // the value must match as a whole
  const std::string others = create(other);
  const auto listed = runtime_->list(kLabel, instance_);
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->front().id, mine);
  EXPECT_TRUE(runtime_->remove(others));
}

TEST_F(DockerRuntimeIntegration, RefusalsHaveTheirCodes) {
  create(shell("taken", "exit 0"));
  ContainerSpec no_image = shell("a", "");
  no_image.image = "cotenant-test/there-is-none:1";
  ContainerSpec no_source = shell("b", "");
  const std::string source = "/nonexistent/" + instance_;
  no_source.mounts = {{source, "/mnt", true}};
  ContainerSpec no_runtime = shell("c", "");
  no_runtime.runtime = "there-is-none";
  struct Case {
    ContainerSpec spec;
    ErrorCode want;
    std::string text;
  };
  for (const Case& c : {Case{shell("taken", ""), ErrorCode::kConflict, "already in use"},
                        Case{no_image, ErrorCode::kNotFound, "o such image"},
                        Case{no_source, ErrorCode::kClient, source},
                        Case{no_runtime, ErrorCode::kClient, "there-is-none"}}) {
    const auto id = runtime_->create(c.spec);
    ASSERT_FALSE(id) << c.text;
    EXPECT_EQ(id.error().code, c.want) << id.error().message;
    EXPECT_PRED_FORMAT2(testing::IsSubstring, c.text, id.error().message);
  }
  EXPECT_FALSE(std::filesystem::exists(source)) << "made by the engine";

  const std::string unknown = instance_ + "-unknown";
  for (const base::Status& status : {runtime_->start(unknown), runtime_->stop(unknown, 1)}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
    EXPECT_PRED_FORMAT2(testing::IsSubstring, "o such container", status.error().message);
  }
}

TEST_F(DockerRuntimeIntegration, MountsAreThereAndReadOnlyWhereAsked) {
  const std::filesystem::path folder = make_folder();
  std::ofstream(folder / "in") << "hello\n";
  ContainerSpec spec = shell("mounts",
                             "test \"$(cat /ro/in)\" = hello || exit 10; "
                             "(echo x > /ro/out) 2>/dev/null && exit 11; "
                             "echo world > /rw/out || exit 12");
  spec.mounts = {{folder.string(), "/ro", true}, {folder.string(), "/rw", false}};
  EXPECT_EQ(await_stop(create_and_start(spec)).exit_code, 0);
  std::string word;
  std::ifstream(folder / "out") >> word;
  EXPECT_EQ(word, "world");
}

TEST_F(DockerRuntimeIntegration, TheMemoryLimitIsInPlace) {
  ContainerSpec spec = shell("limit",
                             "cat /sys/fs/cgroup/memory.max 2>/dev/null || "
                             "cat /sys/fs/cgroup/memory/memory.limit_in_bytes");
  spec.entry_point = {"/bin/sh", "-c"};
  spec.command = {"test \"$( (" + spec.command.front() + ") )\" = 33554432"};
  spec.memory_mib = 32;
  EXPECT_EQ(await_stop(create_and_start(spec)).exit_code, 0);
}

TEST_F(DockerRuntimeIntegration, OutOfMemoryIsReported) {
  // A shell variable that doubles until it does not fit.
  ContainerSpec spec = shell("oom", "s=0123456789abcdef; while :; do s=$s$s; done");
  spec.memory_mib = 16;
  const ContainerState state = await_stop(create_and_start(spec));
  EXPECT_TRUE(state.oom_killed);
  EXPECT_EQ(state.exit_code, 137);
}

TEST_F(DockerRuntimeIntegration, ARestartInPlaceShowsAtOnce) {
  const std::string id = create_and_start(shell("again", "exec sleep 600"));
  const auto first = find(id);
  ASSERT_TRUE(first);
  ASSERT_TRUE(runtime_->stop(id, 0));
  ASSERT_TRUE(runtime_->start(id));
  const auto second = find(id);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->phase, ContainerPhase::kRunning);
  EXPECT_FALSE(second->exit_code);
  EXPECT_GT(second->started_at_ms, first->started_at_ms);
}

TEST_F(DockerRuntimeIntegration, ANewClientFindsTheSameContainers) {
  const std::string running = create_and_start(shell("running", "exec sleep 600"));
  const std::string stopped = create_and_start(shell("stopped", "exit 3"));
  await_stop(stopped);
  runtime_ = connect(endpoint_);
  const auto first = find(running);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->phase, ContainerPhase::kRunning);
  EXPECT_EQ(first->labels.at("cotenant.container"), "running");
  const auto second = find(stopped);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->exit_code, 3);
}

TEST_F(DockerRuntimeIntegration, WatchTellsOfEachChange) {
  std::mutex mutex;
  std::condition_variable changed;
  int changes = 0;
  base::Status ended;
  std::jthread watcher([&](std::stop_token stop) {
    ended = runtime_->watch(
        kLabel, instance_,
        [&] {
          const std::lock_guard lock(mutex);
          ++changes;
          changed.notify_all();
        },
        stop);
  });
  // The connection may not be up yet: make containers until one is seen.
  const auto deadline = steady_clock::now() + kDeadline;
  for (int made = 0;; ++made) {
    create(shell("probe" + std::to_string(made), ""));
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, seconds(1), [&] { return changes > 0; })) break;
    ASSERT_LT(steady_clock::now(), deadline) << "no event seen";
  }
  // Each step but the last makes one event and no more, so that none is taken for the next step's.
  const auto expect_change = [&](const char* what, const std::function<void()>& act) {
    int before = 0;
    {
      const std::lock_guard lock(mutex);
      before = changes;
    }
    act();
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, kDeadline, [&] { return changes > before; })) << what;
  };
  std::string id;
  std::string unused;
  expect_change("create", [&] { id = create(shell("seen", "exec sleep 600")); });
  expect_change("create", [&] { unused = create(shell("unused", "")); });
  expect_change("start", [&] { EXPECT_TRUE(runtime_->start(id)); });
  expect_change("destroy", [&] { EXPECT_TRUE(runtime_->remove(unused)); });
  expect_change("die", [&] { EXPECT_TRUE(runtime_->stop(id, 0)); });

  watcher.request_stop();
  watcher.join();
  EXPECT_TRUE(ended) << ended.error().message;
}

TEST_F(DockerRuntimeIntegration, AnEngineThatIsNotThereIsUnavailable) {
  const auto nobody = connect("unix:///nonexistent/" + instance_ + ".sock");
  const auto info = nobody->info();
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code, ErrorCode::kUnavailable);
  const base::Status watched = nobody->watch(kLabel, instance_, [] {}, {});
  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().code, ErrorCode::kUnavailable);
}

// What a restart policy does: the same container, started once more.
TEST_F(DockerRuntimeIntegration, AnEndedContainerStartsAgain) {
  const std::string id = create_and_start(shell("again", "exit 3"));
  const ContainerState first = await_stop(id);
  ASSERT_TRUE(runtime_->start(id));
  const ContainerState second = await(id, [&](const ContainerState& s) {
    return s.phase == ContainerPhase::kStopped && s.started_at_ms > first.started_at_ms;
  });
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_GT(second.finished_at_ms, first.finished_at_ms);
}

TEST_F(DockerRuntimeIntegration, AHealthCheckIsRunAndSeen) {
  ContainerSpec spec = shell("health", "exec sleep 600");
  spec.health_check = core::HealthCheck{{"CMD-SHELL", "test -e /tmp/well"}, 1, 5, 1, 0};
  const std::string id = create_and_start(spec);
  await(id, [](const ContainerState& s) { return s.health == core::HealthStatus::kUnhealthy; });
  ContainerSpec well = shell("well", "echo x >/tmp/well; exec sleep 600");
  well.health_check = spec.health_check;
  await(create_and_start(well),
        [](const ContainerState& s) { return s.health == core::HealthStatus::kHealthy; });
}

TEST_F(DockerRuntimeIntegration, VolumesGoWithTheLastOfTheirContainers) {
  ContainerSpec writer = shell("writer", "echo kept >/v/x");
  writer.volume_mounts = {{instance_ + "-v", "/v", false, "", {}, {{kLabel, instance_}}}};
  const std::string first = create_and_start(writer);
  await_stop(first);
  ASSERT_TRUE(runtime_->remove(first));
  ContainerSpec reader = shell("reader", "test \"$(cat /v/x)\" = kept");
  reader.volume_mounts = writer.volume_mounts;
  const std::string second = create(reader);
  EXPECT_TRUE(runtime_->remove_unused_volumes(kLabel, instance_));  // it is used
  ASSERT_TRUE(runtime_->start(second));
  EXPECT_EQ(await_stop(second).exit_code, 0);
  ASSERT_TRUE(runtime_->remove(second));

  ASSERT_TRUE(runtime_->remove_unused_volumes(kLabel, instance_));
  ContainerSpec late = shell("late", "test ! -e /v/x");
  late.volume_mounts = writer.volume_mounts;
  const std::string third = create_and_start(late);
  EXPECT_EQ(await_stop(third).exit_code, 0) << "the volume is a new one";
  ASSERT_TRUE(runtime_->remove(third));
  EXPECT_TRUE(runtime_->remove_unused_volumes(kLabel, instance_));
}

}  // namespace
}  // namespace cotenant::adapters
