// What holds after every step of every history, whatever clients and agents do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "core/container_override.h"
#include "random_history.h"
#include "state_dump.h"
#include "unit/sanitized.h"

namespace cotenant::core {
namespace {

using test::RandomHistory;

// What the tasks say is held on one GPU, summed up here and compared with the ledger.
struct GpuClaim {
  std::int64_t shared_mib = 0;
  int shared_containers = 0;
  std::set<std::string> sharing;
  std::set<std::string> dedicated;
};

struct InstanceClaim {
  std::int64_t cpu_units = 0;
  std::int64_t memory_mib = 0;
  std::set<std::string> task_ids;
  std::map<std::string, GpuClaim> gpus;  // by UUID
};

void add_claim(const State& state, const Task& task, InstanceClaim& claim) {
  const TaskDefinition& definition = *state.families.at(task.family).revisions.at(task.revision);
  claim.task_ids.insert(task.id);
  std::set<std::string> shared_on;
  std::size_t whole = 0;
  std::size_t whole_wanted = 0;
  ASSERT_EQ(task.containers.size(), definition.containers.size());
  for (std::size_t i = 0; i < task.containers.size(); ++i) {
    const ContainerDefinition part = with_override(definition.containers[i], task.overrides);
    const std::vector<std::string>& uuids = task.containers[i].gpu_uuids;
    claim.cpu_units += part.cpu_units;
    claim.memory_mib += part.memory_reservation_mib.value_or(part.memory_mib.value_or(0));
    if (const auto* share = std::get_if<SharedGpu>(&part.gpu)) {
      ASSERT_EQ(uuids.size(), 1U);
      shared_on.insert(uuids[0]);
      GpuClaim& gpu = claim.gpus[uuids[0]];
      gpu.shared_mib += share->memory_mib;
      gpu.shared_containers += 1;
      gpu.sharing.insert(task.id);
    } else if (const auto* request = std::get_if<WholeGpus>(&part.gpu)) {
      whole += uuids.size();
      // ALL are those that were there when the task was placed: GPUs may have come since.
      ASSERT_LE(uuids.size(), state.instances.at(task.instance_id).gpus.size());
      whole_wanted += request->all ? uuids.size() : static_cast<std::size_t>(request->count);
      for (const std::string& uuid : uuids) {
        ASSERT_TRUE(claim.gpus[uuid].dedicated.insert(task.id).second) << "given twice: " << uuid;
      }
    } else {
      ASSERT_TRUE(uuids.empty());
    }
  }
  ASSERT_LE(shared_on.size(), 1U) << "the shares of a task are on one GPU";
  ASSERT_EQ(whole, whole_wanted);
}

void check_gpu(const GpuLedger& ledger, std::size_t gpu, const GpuClaim& claim) {
  const GpuDevice& device = ledger.device(gpu);
  std::set<std::string> holders = claim.sharing;
  holders.insert(claim.dedicated.begin(), claim.dedicated.end());
  const std::vector<std::string> ids = ledger.task_ids(gpu);
  ASSERT_EQ(std::set<std::string>(ids.begin(), ids.end()), holders);
  if (!claim.dedicated.empty()) {
    ASSERT_TRUE(claim.sharing.empty()) << "mixed";
    ASSERT_EQ(claim.dedicated.size(), 1U) << "dedicated twice";
    ASSERT_EQ(ledger.mode(gpu), SharingMode::kDedicated);
    ASSERT_EQ(ledger.remaining_mib(gpu), 0);
    return;
  }
  ASSERT_EQ(ledger.mode(gpu), holders.empty() ? SharingMode::kIdle : SharingMode::kNvidiaMps);
  ASSERT_EQ(ledger.container_count(gpu), claim.shared_containers);
  ASSERT_EQ(ledger.remaining_mib(gpu), device.memory_mib.value_or(0) - claim.shared_mib);
  ASSERT_GE(ledger.remaining_mib(gpu), 0) << "over-reserved";
  if (!holders.empty()) {
    ASSERT_TRUE(device.memory_mib.has_value());
    ASSERT_LT(claim.shared_containers, device.client_slots);
  }
}

// Reservations and the tasks that hold them match one to one.
void check_reservations(const State& state) {
  std::map<std::string, InstanceClaim> claims;
  for (const auto& [id, task] : state.tasks) {
    if (task.last_status == TaskStatus::kStopped) continue;
    add_claim(state, task, claims[task.instance_id]);
  }
  for (const auto& [id, instance] : state.instances) {
    InstanceClaim& claim = claims[id];
    ASSERT_EQ(instance.task_ids, claim.task_ids);
    ASSERT_EQ(instance.used_cpu_units, claim.cpu_units);
    ASSERT_EQ(instance.used_memory_mib, claim.memory_mib);
    ASSERT_GE(instance.free_cpu_units(), 0);
    ASSERT_GE(instance.free_memory_mib(), 0);
    for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
      check_gpu(instance.gpus, gpu, claim.gpus[instance.gpus.device(gpu).uuid]);
    }
    // No task holds a GPU that the instance does not have.
    ASSERT_EQ(claim.gpus.size(), instance.gpus.size());
  }
  ASSERT_EQ(claims.size(), state.instances.size());
}

// A task by itself: its members agree with each other.
void check_task(const Task& task) {
  const bool all_stopped = std::all_of(
      task.containers.begin(), task.containers.end(),
      [](const TaskContainer& part) { return part.status == ContainerStatus::kStopped; });
  ASSERT_EQ(task.last_status == TaskStatus::kStopped, all_stopped);
  ASSERT_EQ(task.stopped_at_ms != 0, all_stopped);
  ASSERT_EQ(task.execution_stopped_at_ms != 0, all_stopped);
  const bool stopping = task.desired_status == DesiredStatus::kStopped;
  ASSERT_EQ(task.stop_code != StopCode::kNone, stopping);
  ASSERT_EQ(!task.stopped_reason.empty(), stopping);
  ASSERT_EQ(task.stopping_at_ms != 0, stopping);
  ASSERT_TRUE(task.last_status != TaskStatus::kRunning || task.started_at_ms != 0);
  ASSERT_TRUE(task.last_status < TaskStatus::kStopping || stopping);
}

// Nothing about a task goes back.
void check_progress(const Task& before, const Task& after) {
  ASSERT_GE(after.last_status, before.last_status);
  ASSERT_GE(after.version, before.version);
  if (before.desired_status == DesiredStatus::kStopped) {
    ASSERT_EQ(after.desired_status, DesiredStatus::kStopped);
    ASSERT_EQ(after.stop_code, before.stop_code);
    ASSERT_EQ(after.stopped_reason, before.stopped_reason);
    ASSERT_EQ(after.stopping_at_ms, before.stopping_at_ms);
  }
  ASSERT_TRUE(before.started_at_ms == 0 || after.started_at_ms == before.started_at_ms);
  for (std::size_t i = 0; i < before.containers.size(); ++i) {
    ASSERT_GE(after.containers[i].status, before.containers[i].status);
    ASSERT_EQ(after.containers[i].gpu_uuids, before.containers[i].gpu_uuids);
    if (before.containers[i].status == ContainerStatus::kStopped) {
      ASSERT_EQ(after.containers[i].exit_code, before.containers[i].exit_code);
    }
  }
}

void expect_all_idle(const State& state) {
  for (const auto& [id, instance] : state.instances) {
    EXPECT_EQ(instance.used_cpu_units, 0);
    EXPECT_EQ(instance.used_memory_mib, 0);
    EXPECT_TRUE(instance.task_ids.empty());
    // Also those that are out of service: they were lost while they held something.
    for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
      EXPECT_EQ(instance.gpus.mode(gpu), SharingMode::kIdle);
    }
    for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
      EXPECT_EQ(instance.gpus.remaining_mib(gpu), instance.gpus.total_mib(gpu));
      EXPECT_EQ(instance.gpus.container_count(gpu), 0);
    }
  }
}

// How often something happened, so that a history which exercises nothing does not pass.
struct Tally {
  int ok = 0;
  int refused = 0;
  int placed = 0;
  int not_placed = 0;
  int stopped = 0;
};

void count(const base::Result<Outcome>& result, Tally& tally) {
  if (!result) {
    ++tally.refused;
    return;
  }
  ++tally.ok;
  if (const auto* reply = std::get_if<RunTaskReply>(&result->reply)) {
    tally.placed += static_cast<int>(reply->task_ids.size());
    tally.not_placed += static_cast<int>(reply->failures.size());
  }
}

TEST(ReducerPropertyTest, InvariantsHoldAfterEveryStepAndReleasingAllGivesIdle) {
  constexpr int kHistories = tests::kSanitized ? 15 : 150;
  constexpr int kSteps = 2000;
  Tally tally;
  for (int seed = 0; seed < kHistories; ++seed) {
    RandomHistory history(static_cast<std::uint64_t>(seed));
    std::map<std::string, Task> before = history.state().tasks;
    for (int step = 0; step < kSteps; ++step) {
      const Command command = history.next();
      const auto result = history.step(command);
      count(result, tally);
      check_reservations(history.state());
      if (HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
      // Only these change a task.
      if (!std::holds_alternative<ObserveTasks>(command) &&
          !std::holds_alternative<StopTask>(command) && !std::holds_alternative<RunTask>(command) &&
          !std::holds_alternative<Expire>(command) && !std::holds_alternative<StartTask>(command) &&
          !std::holds_alternative<DeregisterInstance>(command)) {
        continue;
      }
      for (const auto& [id, task] : history.state().tasks) {
        const auto known = before.find(id);
        if (known != before.end() && known->second.version == task.version) continue;
        check_task(task);
        if (known != before.end()) {
          check_progress(known->second, task);
          if (task.last_status == TaskStatus::kStopped) ++tally.stopped;
        }
        before[id] = task;
        if (HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
      }
    }
    history.report_all_gone();
    expect_all_idle(history.state());
  }
  EXPECT_EQ(tally.ok + tally.refused, kHistories * kSteps);
  EXPECT_GT(tally.refused, kHistories * 60);
  EXPECT_GT(tally.placed, kHistories * 60);
  EXPECT_GT(tally.not_placed, kHistories * 60);
  EXPECT_GT(tally.stopped, kHistories * 60);
}

// The records that the effects name are the records that have changed: what the store gets is
// enough to come back to the same state, and an error changes nothing at all.
TEST(ReducerPropertyTest, EffectsNameExactlyTheChangedRecords) {
  constexpr int kHistories = 10;
  constexpr int kSteps = 1000;
  for (int seed = 1000; seed < 1000 + kHistories; ++seed) {
    RandomHistory history(static_cast<std::uint64_t>(seed));
    auto before = test::dump_records(history.state());
    std::string before_all = test::dump(history.state());
    std::set<std::string> stopping_before;
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " step " << step);
      const auto result = history.step(history.next());
      const auto after = test::dump_records(history.state());
      std::string after_all = test::dump(history.state());
      if (!result) {
        ASSERT_EQ(after_all, before_all);
        continue;
      }
      std::set<RecordRef> changed;
      for (const auto& [ref, text] : after) {
        const auto known = before.find(ref);
        if (known == before.end() || known->second != text) changed.insert(ref);
      }
      for (const auto& [ref, text] : before) {
        if (after.count(ref) == 0) changed.insert(ref);
      }
      ASSERT_TRUE(changed == result->effects.changed_records);
      before = after;
      before_all = std::move(after_all);
    }
  }
}

// An agent hears of every task that is new to it, that it is to stop, and that is done.
TEST(ReducerPropertyTest, AgentsAreToldOfEveryTaskThatStartsOrStops) {
  constexpr int kHistories = 20;
  constexpr int kSteps = 1000;
  enum class Seen { kRun, kStop, kDone };
  for (int seed = 2000; seed < 2000 + kHistories; ++seed) {
    RandomHistory history(static_cast<std::uint64_t>(seed));
    std::map<std::string, Seen> before;
    for (int step = 0; step < kSteps; ++step) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " step " << step);
      const auto result = history.step(history.next());
      std::map<std::string, Seen> after;
      for (const auto& [id, task] : history.state().tasks) {
        after[id] = task.last_status == TaskStatus::kStopped         ? Seen::kDone
                    : task.desired_status == DesiredStatus::kStopped ? Seen::kStop
                                                                     : Seen::kRun;
        const auto known = before.find(id);
        const bool differs = known == before.end() || known->second != after[id];
        const std::set<std::string>* told = nullptr;
        if (result) {
          const auto at = result->effects.notify_tasks.find(task.instance_id);
          if (at != result->effects.notify_tasks.end()) told = &at->second;
        }
        ASSERT_EQ(told != nullptr && told->count(id) > 0, differs) << "task " << id;
      }
      before = std::move(after);
    }
  }
}

// After a load there are only the records; reserve() for each holder builds the rest.
TEST(ReducerPropertyTest, ReservationsCanBeRebuiltFromTheRecords) {
  for (int seed = 3000; seed < 3050; ++seed) {
    RandomHistory history(static_cast<std::uint64_t>(seed));
    for (int step = 0; step < 500; ++step) static_cast<void>(history.step(history.next()));
    State loaded = history.state();
    for (auto& [id, instance] : loaded.instances) {
      instance.used_cpu_units = instance.used_memory_mib = 0;
      instance.task_ids.clear();
      instance.gpus = GpuLedger(instance.registration.gpus);
    }
    for (const auto& [id, task] : loaded.tasks) {
      if (holds_reservation(task)) reserve(loaded, task);
    }
    ASSERT_EQ(test::dump_reservations(loaded), test::dump_reservations(history.state()))
        << "seed " << seed;
  }
}

std::string digest_of_history(std::uint64_t seed) {
  RandomHistory history(seed);
  std::uint64_t digest = 0;
  for (int step = 0; step < 2000; ++step) {
    static_cast<void>(history.step(history.next()));
    if (step % 10 == 0) digest = base::fnv1a(test::dump(history.state()), digest);
  }
  return std::to_string(digest);
}

TEST(ReducerPropertyTest, TheSameSeedGivesTheSameDigest) {
  std::set<std::string> digests;
  for (std::uint64_t seed = 4000; seed < 4010; ++seed) {
    const std::string digest = digest_of_history(seed);
    EXPECT_EQ(digest, digest_of_history(seed)) << "seed " << seed;
    digests.insert(digest);
  }
  EXPECT_EQ(digests.size(), 10U) << "other seeds give other histories";
}

}  // namespace
}  // namespace cotenant::core
