// StopTask, and what agents report of tasks: status ladders, stop codes, when a GPU is free again.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "world.h"

namespace cotenant::core {
namespace {

using test::container;
using test::exited;
using test::gone;
using test::idle_gpu;
using test::running;
using test::World;

// Two essential containers share a GPU, and one that is not essential.
struct Life : World {
  Life() {
    connect("i1", {idle_gpu()});
    connect("i2", {idle_gpu()});
    define("pair", {container("a", SharedGpu{1000, {}}), container("b", SharedGpu{2000, {}}),
                    container("side", NoGpu{}, false)});
    id = run_one("pair");
    now_ms = 2000;
  }
  Task& it() { return task(id); }
  bool gpu_is_held() { return node("i1").gpus.mode(0) != SharingMode::kIdle; }
  std::string id;
};

using Report = std::vector<ContainerObservation>;

TEST(ObserveTasksTest, StatusLadders) {
  struct Row {
    std::string_view name;
    std::vector<Report> reports;
    TaskStatus want;
    DesiredStatus want_desired = DesiredStatus::kRunning;
    StopCode want_code = StopCode::kNone;
    std::string want_reason = {};
  };
  const std::string exited_reason = "Essential container in task exited";
  const Row rows[] = {
      {"nothing yet", {}, TaskStatus::kPending},
      {"some run", {{running("a"), running("side")}}, TaskStatus::kPending},
      {"all run, reported bit by bit",
       {{running("a")}, {running("b")}, {running("side")}},
       TaskStatus::kRunning},
      {"a non-essential one may exit, with any code",
       {{running("a"), running("b"), running("side")}, {exited("side", 1)}},
       TaskStatus::kRunning},
      {"... before the others run", {{exited("side", 0)}}, TaskStatus::kPending},
      {"... or never start",
       {{running("a"), running("b"), gone("side", "no image")}},
       TaskStatus::kRunning},
      {"an essential one exits: the others are to stop",
       {{running("a"), running("b"), running("side")}, {exited("a", 0)}},
       TaskStatus::kStopping,
       DesiredStatus::kStopped,
       StopCode::kEssentialContainerExited,
       exited_reason},
      {"... while another has not started",
       {{running("a")}, {exited("a", 3)}},
       TaskStatus::kStopping,
       DesiredStatus::kStopped,
       StopCode::kEssentialContainerExited,
       exited_reason},
      {"all gone",
       {{running("a")}, {exited("a", 3)}, {exited("b", 143), gone("side")}},
       TaskStatus::kStopped,
       DesiredStatus::kStopped,
       StopCode::kEssentialContainerExited,
       exited_reason},
      {"all gone in one report",
       {{exited("a", 0), exited("b", 0), exited("side", 0)}},
       TaskStatus::kStopped,
       DesiredStatus::kStopped,
       StopCode::kEssentialContainerExited,
       exited_reason},
      {"one that ran and exited before anybody looked",
       {{exited("b", 2)}},
       TaskStatus::kStopping,
       DesiredStatus::kStopped,
       StopCode::kEssentialContainerExited,
       exited_reason},
      {"one whose process never ran",
       {{gone("a", "CannotPullContainerError: no such image")}},
       TaskStatus::kStopping,
       DesiredStatus::kStopped,
       StopCode::kTaskFailedToStart,
       "CannotPullContainerError: no such image"},
      {"... without a reason",
       {{gone("b")}},
       TaskStatus::kStopping,
       DesiredStatus::kStopped,
       StopCode::kTaskFailedToStart,
       "Task failed to start"},
      {"a container that ran and vanished did start",
       {{running("a"), running("b"), running("side")}, {gone("a")}},
       TaskStatus::kStopping,
       DesiredStatus::kStopped,
       StopCode::kEssentialContainerExited,
       exited_reason},
      {"the first stop reason is kept",
       {{gone("a", "CannotStartContainerError: first")}, {gone("b", "second"), exited("side", 1)}},
       TaskStatus::kStopped,
       DesiredStatus::kStopped,
       StopCode::kTaskFailedToStart,
       "CannotStartContainerError: first"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Life life;
    for (const Report& report : row.reports) life.observe(life.id, report);
    EXPECT_EQ(to_string(life.it().last_status), to_string(row.want));
    EXPECT_EQ(to_string(life.it().desired_status), to_string(row.want_desired));
    EXPECT_EQ(to_string(life.it().stop_code), to_string(row.want_code));
    EXPECT_EQ(life.it().stopped_reason, row.want_reason);
    EXPECT_EQ(life.gpu_is_held(), row.want != TaskStatus::kStopped);
  }
}

TEST(ObserveTasksTest, RecordsWhatTheAgentSaw) {
  Life life;
  life.observe(life.id, {running("a")});
  const TaskContainer& a = life.it().containers[0];
  EXPECT_EQ(a.status, ContainerStatus::kRunning);
  EXPECT_EQ(a.runtime_id, "engine-id");
  EXPECT_EQ(a.image_digest, "sha256:abc");
  EXPECT_FALSE(a.exit_code.has_value());

  // A container that is gone has no engine id any more; the last known one stays.
  life.observe(life.id, {{"a", ContainerStatus::kStopped, 137, "OutOfGpuMemory: ...", "", ""}});
  EXPECT_EQ(life.it().containers[0].exit_code, 137);
  EXPECT_EQ(life.it().containers[0].reason, "OutOfGpuMemory: ...");
  EXPECT_EQ(life.it().containers[0].runtime_id, "engine-id");
  EXPECT_EQ(life.it().containers[0].image_digest, "sha256:abc");
}

TEST(ObserveTasksTest, ReasonsAreBoundedAndStayValidUtf8) {
  struct Row {
    std::string_view name;
    std::string reason;
    std::size_t want_bytes;
  };
  const std::string e_acute = "\xC3\xA9";
  const Row rows[] = {
      {"at the bound", std::string(base::limits::kReasonChars, 'x'), base::limits::kReasonChars},
      {"above it", std::string(5000, 'x'), base::limits::kReasonChars},
      // JSON can only carry whole characters.
      {"never cut inside a character", std::string(base::limits::kReasonChars - 1, 'x') + e_acute,
       base::limits::kReasonChars - 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Life life;
    life.observe(life.id, {gone("side", row.reason)});
    EXPECT_EQ(life.it().containers[2].reason.size(), row.want_bytes);
  }
}

TEST(ObserveTasksTest, Timestamps) {
  Life life;
  life.now_ms = 10;
  life.observe(life.id, {running("a")});
  EXPECT_EQ(life.it().started_at_ms, 0) << "PENDING";
  life.now_ms = 20;
  life.observe(life.id, {running("b"), running("side")});
  EXPECT_EQ(life.it().started_at_ms, 20);
  life.now_ms = 30;
  life.observe(life.id, {exited("b", 0)});
  EXPECT_EQ(life.it().stopping_at_ms, 30);
  EXPECT_EQ(life.it().stopped_at_ms, 0);
  life.now_ms = 40;
  life.observe(life.id, {exited("a", 0), exited("side", 0)});
  EXPECT_EQ(life.it().started_at_ms, 20);
  EXPECT_EQ(life.it().stopping_at_ms, 30);
  EXPECT_EQ(life.it().execution_stopped_at_ms, 40);
  EXPECT_EQ(life.it().stopped_at_ms, 40);
}

TEST(ObserveTasksTest, ATaskThatNeverRanHasNoStartTime) {
  Life life;
  life.observe(life.id, {gone("a", "CannotPullContainerError"), gone("b"), gone("side")});
  EXPECT_EQ(life.it().last_status, TaskStatus::kStopped);
  EXPECT_EQ(life.it().started_at_ms, 0);
}

TEST(ObserveTasksTest, DuplicatesAndStaleReportsChangeNothing) {
  struct Row {
    std::string_view name;
    std::vector<Report> before;
    Report stale;
  };
  const Report all_run = {running("a"), running("b"), running("side")};
  const Row rows[] = {
      {"the same again", {all_run}, all_run},
      {"status going backwards", {all_run}, {{"a", ContainerStatus::kPending, {}, "", "", ""}}},
      {"RUNNING after STOPPED", {all_run, {exited("side", 1)}}, {running("side")}},
      {"another exit code after STOPPED", {all_run, {exited("side", 1)}}, {exited("side", 0)}},
      {"a container that the task does not have", {all_run}, {running("nope")}},
      {"nothing", {all_run}, {}},
      {"after the end", {{exited("a", 0), exited("b", 0), gone("side")}}, all_run},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Life life;
    for (const Report& report : row.before) life.observe(life.id, report);
    life.now_ms = 9000;
    const std::string before = test::dump(life.state);
    const Outcome outcome = life.observe(life.id, row.stale);
    EXPECT_EQ(test::dump(life.state), before);
    EXPECT_TRUE(outcome.effects.changed_records.empty());
    EXPECT_TRUE(outcome.effects.notify_tasks.empty());
  }
}

TEST(ObserveTasksTest, ReportsOfOthersTasksAreIgnored) {
  Life life;
  ASSERT_EQ(life.it().instance_id, "i1");
  const std::string before = test::dump(life.state);
  const Report all_gone = {exited("a", 0), exited("b", 0), gone("side")};
  for (const auto& [instance_id, task_id] : std::vector<std::pair<std::string, std::string>>{
           {"i2", life.id}, {"nobody", life.id}, {"i1", "0123456789abcdef"}, {"i1", ""}}) {
    const Outcome outcome = life.must(ObserveTasks{instance_id, {{task_id, all_gone}}});
    EXPECT_EQ(test::dump(life.state), before) << instance_id << " " << task_id;
    EXPECT_TRUE(outcome.effects.changed_records.empty());
  }
}

TEST(ObserveTasksTest, OneReportMayTellOfSeveralTasks) {
  Life life;
  const std::string second = life.run_one("pair");
  ASSERT_EQ(life.task(second).instance_id, "i1");
  const Outcome outcome = life.must(
      ObserveTasks{"i1", {{life.id, {running("a")}}, {"unknown", {}}, {second, {running("b")}}}});
  EXPECT_EQ(outcome.effects.changed_records,
            (std::set<RecordRef>{{RecordKind::kTask, life.id}, {RecordKind::kTask, second}}));
  EXPECT_TRUE(outcome.effects.notify_tasks.empty()) << "the agent knows what it reported";
}

TEST(ObserveTasksTest, TheAgentHearsThatTheOthersMustStopAndThatTheTaskIsDone) {
  Life life;
  life.observe(life.id, {running("a"), running("b"), running("side")});
  const std::map<std::string, std::set<std::string>> notified = {{"i1", {life.id}}};
  EXPECT_EQ(life.observe(life.id, {exited("a", 1)}).effects.notify_tasks, notified);
  EXPECT_TRUE(life.observe(life.id, {exited("b", 143)}).effects.notify_tasks.empty());
  EXPECT_EQ(life.observe(life.id, {exited("side", 143)}).effects.notify_tasks, notified);
}

TEST(ObserveTasksTest, EveryChangeRaisesTheVersion) {
  Life life;
  EXPECT_EQ(life.it().version, 1);
  life.observe(life.id, {running("a")});
  EXPECT_EQ(life.it().version, 2);
  life.observe(life.id, {running("a")});
  EXPECT_EQ(life.it().version, 2);
  life.must(StopTask{"default", life.id, ""});
  EXPECT_EQ(life.it().version, 3);
}

TEST(StopTaskTest, AsksAndKeepsTheGpuUntilTheContainersAreGone) {
  Life life;
  life.observe(life.id, {running("a"), running("b"), running("side")});
  life.now_ms = 7000;
  const Outcome outcome = life.must(StopTask{"default", life.id, "make room"});
  EXPECT_EQ(std::get<TaskReply>(outcome.reply).task_id, life.id);
  EXPECT_EQ(outcome.effects.changed_records, (std::set<RecordRef>{{RecordKind::kTask, life.id}}));
  EXPECT_EQ(outcome.effects.notify_tasks,
            (std::map<std::string, std::set<std::string>>{{"i1", {life.id}}}));
  EXPECT_EQ(life.it().desired_status, DesiredStatus::kStopped);
  EXPECT_EQ(life.it().stop_code, StopCode::kUserInitiated);
  EXPECT_EQ(life.it().stopped_reason, "make room");
  EXPECT_EQ(life.it().stopping_at_ms, 7000);
  EXPECT_TRUE(life.gpu_is_held()) << "a stop that was asked for frees nothing";

  // Each of the reports that lead to the end.
  for (const char* name : {"side", "b"}) {
    life.observe(life.id, {exited(name, 143)});
    EXPECT_EQ(life.it().last_status, TaskStatus::kStopping);
    EXPECT_TRUE(life.gpu_is_held());
    EXPECT_EQ(life.node("i1").used_memory_mib, 3 * 512);
  }
  life.observe(life.id, {exited("a", 137)});
  EXPECT_EQ(life.it().last_status, TaskStatus::kStopped);
  EXPECT_FALSE(life.gpu_is_held());
  EXPECT_EQ(life.node("i1").used_memory_mib, 0);
  EXPECT_EQ(life.node("i1").used_cpu_units, 0);
  EXPECT_TRUE(life.node("i1").task_ids.empty());
  // Containers that exit because the user stopped them do not change the reason.
  EXPECT_EQ(life.it().stop_code, StopCode::kUserInitiated);
  EXPECT_EQ(life.it().stopped_reason, "make room");
}

// A dedicated GPU is not given away while its old tenant is still being stopped.
TEST(StopTaskTest, TheNextTenantWaitsForTheReport) {
  World world;
  world.connect("i1", {idle_gpu()});
  world.define("whole", {container("main", WholeGpus{1, false})});
  const std::string first = world.run_one("whole");
  world.must(StopTask{"default", first, ""});
  EXPECT_EQ(world.run(World::run_command("whole")).failures.at(0).reason, "RESOURCE:GPU");
  world.must(DisconnectInstance{"i1", 1});
  world.connect("i1", {idle_gpu()}, 2);
  EXPECT_EQ(world.run(World::run_command("whole")).failures.at(0).reason, "RESOURCE:GPU");
  world.observe(first, {gone("main")});
  world.run_one("whole");
}

TEST(StopTaskTest, IsIdempotent) {
  Life life;
  life.must(StopTask{"default", life.id, "first"});
  life.now_ms = 8000;
  const std::string before = test::dump(life.state);
  const Outcome again = life.must(StopTask{"default", life.id, "second"});
  EXPECT_EQ(std::get<TaskReply>(again.reply).task_id, life.id);
  EXPECT_TRUE(again.effects.changed_records.empty());
  EXPECT_TRUE(again.effects.notify_tasks.empty());
  EXPECT_EQ(test::dump(life.state), before);

  life.observe(life.id, {gone("a"), gone("b"), gone("side")});
  const std::string stopped = test::dump(life.state);
  life.must(StopTask{"default", life.id, "third"});
  EXPECT_EQ(test::dump(life.state), stopped);
}

TEST(StopTaskTest, WithoutAReasonItSaysWhatEcsSays) {
  Life life;
  life.must(StopTask{"default", life.id, ""});
  EXPECT_EQ(life.it().stopped_reason, "Task stopped by user");
}

TEST(StopTaskTest, DoesNotReplaceTheReasonOfATaskThatEndsByItself) {
  Life life;
  life.observe(life.id, {exited("a", 1)});
  life.must(StopTask{"default", life.id, "too late"});
  EXPECT_EQ(life.it().stop_code, StopCode::kEssentialContainerExited);
  EXPECT_EQ(life.it().stopped_reason, "Essential container in task exited");
}

TEST(StopTaskTest, Refusals) {
  Life life;
  life.must(CreateCluster{"other"});
  struct Row {
    std::string_view name;
    StopTask command;
    base::ErrorCode want_code;
    std::string_view want_in_message;
  };
  const Row rows[] = {
      {"unknown cluster", {"nope", life.id, ""}, base::ErrorCode::kClusterNotFound, "'nope'"},
      {"unknown task",
       {"default", "0a1b", ""},
       base::ErrorCode::kInvalidParameter,
       "task: '0a1b' was not found in cluster 'default'"},
      {"the task of another cluster",
       {"other", life.id, ""},
       base::ErrorCode::kInvalidParameter,
       "was not found in cluster 'other'"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const base::Error error = life.refused(row.command);
    EXPECT_EQ(base::error_name(error.code), base::error_name(row.want_code));
    EXPECT_NE(error.message.find(row.want_in_message), std::string::npos) << error.message;
  }
}

}  // namespace
}  // namespace cotenant::core
