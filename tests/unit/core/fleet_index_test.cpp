// The index against a scan of everything, on random clusters and histories.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/placement/placement_ranking.h"
#include "core/placement/policy_engine.h"
#include "core/placement/tight_policy.h"
#include "core/placement/what_if.h"
#include "fleet_history.h"
#include "unit/sanitized.h"

namespace cotenant::core {
namespace {

using test::FleetHistory;
using Rank = std::tuple<std::int64_t, int, NodeSlot, std::size_t>;

// Every node, every GPU, every test, nothing remembered.
std::optional<PlacementChoice> scan_tight(const Fleet& fleet, const PlacementQuery& query) {
  std::optional<Rank> best;
  const TaskGpuNeed& need = query.need.gpu;
  for (NodeSlot slot = 0; slot < fleet.size(); ++slot) {
    if (failed_test(fleet, slot, query)) continue;
    std::int64_t usable_mib = 0;
    std::int64_t idle = 0;
    for (std::size_t i = 0; i < fleet.node(slot).gpu_count; ++i) {
      const FleetGpu& gpu = fleet.gpu(slot, i);
      const bool is_idle = !gpu.dedicated && gpu.containers == 0;
      if (gpu.healthy && !gpu.dedicated) usable_mib += gpu.left_mib;
      if (gpu.healthy && is_idle) ++idle;
      const bool fits = need.is_shared() && gpu.healthy && !gpu.dedicated && gpu.total_mib > 0 &&
                        gpu.left_mib >= need.shared_memory_mib &&
                        gpu.containers + need.shared_containers <= gpu.client_slots - 1;
      const Rank rank{gpu.left_mib, is_idle ? 1 : 0, slot, i};
      if (fits && (!best || rank < *best)) best = rank;
    }
    if (need.is_shared()) continue;
    const Rank rank{need.is_whole() ? idle : usable_mib, 0, slot, 0};
    if (!best || rank < *best) best = rank;
  }
  if (!best) return std::nullopt;
  PlacementChoice choice{std::get<2>(*best), {}};
  if (need.is_shared()) choice.gpus.insert(std::get<3>(*best));
  if (need.is_whole()) {
    int wanted = need.whole_all ? fleet.node(choice.slot).gpu_count : need.whole_count;
    for (std::size_t i = 0; wanted > 0; ++i) {
      const FleetGpu& gpu = fleet.gpu(choice.slot, i);
      if (!gpu.healthy || gpu.dedicated || gpu.containers > 0) continue;
      choice.gpus.insert(i);
      --wanted;
    }
  }
  return choice;
}

TEST(FleetIndexTest, ChoosesWhatAScanChooses) {
  constexpr int kSteps = tests::kSanitized ? 2000 : 30000;
  int placed = 0;
  int refused = 0;
  for (const int nodes : {1, 3, 8, 20, 40, 600}) {
    FleetHistory history(static_cast<std::uint64_t>(nodes), nodes);
    // A large one, whose index has many parts to step over, costs the scan more.
    const int steps = nodes > 100 ? kSteps / 5 : kSteps;
    for (int step = 0; step < steps; ++step) {
      history.disturb();
      const PlacementQuery query = history.query();
      const auto want = scan_tight(history.fleet(), query);
      const auto got = choose_tight(history.fleet(), query);
      ASSERT_EQ(got.has_value(), want.has_value()) << nodes << " nodes, step " << step;
      if (!got) {
        ++refused;
        continue;
      }
      ASSERT_EQ(got->slot, want->slot) << nodes << " nodes, step " << step;
      ASSERT_TRUE(got->gpus == want->gpus) << nodes << " nodes, step " << step;
      history.take(*got, query.need);
      ++placed;
    }
  }
  EXPECT_GT(placed, kSteps);
  EXPECT_GT(refused, kSteps / 2);
}

// One stage goes by the index; the same twice looks at every node.
TEST(FleetIndexTest, PackingByGpuMemoryIsTheOrderOfTheIndex) {
  FleetHistory history(12, 30);
  base::Prng prng(1);
  const RankStage stage = RankStage::binpack(PackField::kGpuMemory);
  for (int step = 0; step < 3000; ++step) {
    history.disturb();
    const PlacementQuery query = history.query();
    const auto want = choose_by_stages(history.fleet(), query, {stage, stage}, prng);
    const auto got = choose_by_stages(history.fleet(), query, {stage}, prng);
    ASSERT_EQ(got.has_value(), want.has_value()) << step;
    if (!got) continue;
    ASSERT_EQ(got->slot, want->slot) << step;
    ASSERT_TRUE(got->gpus == want->gpus) << step;
    history.take(*got, query.need);
  }
}

TEST(FleetIndexTest, WhatIfLeavesNoTrace) {
  FleetHistory history(11, 12);
  for (int round = 0; round < 300; ++round) {
    for (int i = 0; i < 5; ++i) history.disturb();
    const PlacementQuery query = history.query();
    const auto before = choose_tight(history.fleet(), query);
    {
      WhatIf what_if(history.fleet());
      for (int copy = 0; copy < 20; ++copy) {
        const PlacementQuery other = history.query();
        if (const auto choice = choose_tight(history.fleet(), other)) {
          what_if.take(*choice, other.need);
        }
      }
    }
    const auto after = choose_tight(history.fleet(), query);
    ASSERT_EQ(after.has_value(), before.has_value());
    if (!after) continue;
    ASSERT_EQ(after->slot, before->slot);
    ASSERT_TRUE(after->gpus == before->gpus);
    history.take(*after, query.need);
  }
}

// The least cost over all nodes, each scored anew.
std::optional<PlacementChoice> scan_scores(const Fleet& fleet, const PlacementPolicy& policy,
                                           const PlacementQuery& query) {
  std::int32_t least = kNoFitCost;
  std::optional<PlacementChoice> best;
  for (NodeSlot slot = 0; slot < fleet.size(); ++slot) {
    if (failed_test(fleet, slot, query)) continue;
    const NodeScore score = policy.score(fleet, slot, query.need);
    if (score.cost >= least) continue;
    least = score.cost;
    best = PlacementChoice{slot, {}};
    if (query.need.gpu.is_shared()) best->gpus.insert(score.gpu);
    if (query.need.gpu.is_whole()) best->gpus = fleet.lowest_idle(slot, query.need.gpu);
  }
  return best;
}

TEST(ScoreRowsTest, EveryPolicyChoosesWhatAScanOfFreshScoresChooses) {
  constexpr int kSteps = tests::kSanitized ? 150 : 1500;
  for (const std::string_view name : placement_policy_names()) {
    if (name == "tight") continue;
    SCOPED_TRACE(name);
    FleetHistory history(5, 30);
    Workload workload;
    PolicyEngine engine;
    const auto policy = make_placement_policy(name);
    std::int64_t trainings = 0;
    int placed = 0;
    for (int step = 0; step < kSteps; ++step) {
      history.disturb();
      const PlacementQuery query = history.query();
      workload.arrive(history.fleet(), shape_of(history.fleet(), query));
      if (workload.trainings() != trainings) {
        policy->train(history.fleet(), workload.training_set());
        trainings = workload.trainings();
      }
      const auto want = scan_scores(history.fleet(), *policy, query);
      const auto got = engine.choose(history.fleet(), workload, name, query);
      ASSERT_EQ(got.has_value(), want.has_value()) << "step " << step;
      if (!got) continue;
      ASSERT_EQ(got->slot, want->slot) << "step " << step;
      ASSERT_TRUE(got->gpus == want->gpus) << "step " << step;
      history.take(*got, query.need);
      workload.placed();
      ++placed;
    }
    EXPECT_GT(placed, kSteps / 20);
  }
}

// What one kind of need costs is kept for some thousands of kinds, not for all that ever came.
TEST(ScoreRowsTest, KeepsABoundedNumberOfRows) {
  FleetHistory history(6, 3);
  PolicyEngine engine;
  const Workload workload;
  PlacementQuery query;
  std::size_t full = 0;
  for (std::size_t kind = 0; kind < 3 * kScoreRowsMax; ++kind) {
    query.need.cpu_units = static_cast<std::int64_t>(kind);
    engine.choose(history.fleet(), workload, "balanced", query);
    if (kind == kScoreRowsMax) full = engine.bytes();
  }
  EXPECT_EQ(engine.bytes(), full);
}

// An engine that has been there all the while, and one that is new as after a restart, decide alike
// when a class of nodes has come, or a node larger than those of its class, since the last training.
TEST(PolicyEngineTest, DecidesAsAfterARestartWhenClassesHaveComeSinceTheTraining) {
  const auto node = [](const std::string& model, std::size_t gpus, std::int32_t left_mib) {
    NodeImage image;
    image.cpu_total = image.cpu_free = 64 * 1024;
    image.memory_total_mib = image.memory_free_mib = 65536;
    image.model = model;
    FleetGpu gpu;
    gpu.total_mib = gpu.left_mib = 24000;
    gpu.client_slots = 48;
    image.gpus.assign(gpus, gpu);
    image.gpus[0].left_mib = left_mib;
    image.gpus[0].containers = left_mib < 24000 ? 1 : 0;
    return image;
  };
  Fleet fleet;
  for (int i = 0; i < 4; ++i) fleet.add(node("L4", 2, 24000 - 6000 * i));
  PlacementQuery query;
  query.need.cpu_units = 1024;
  query.need.gpu.shared_containers = 1;
  Workload workload;
  for (int i = 0; i < 100; ++i) {
    query.need.gpu.shared_memory_mib = i % 3 == 0 ? 11000 : 2000;
    workload.arrive(fleet, shape_of(fleet, query));
  }
  ASSERT_EQ(workload.trainings(), 1);
  for (const std::string_view name : placement_policy_names()) {
    if (name == "tight") continue;
    SCOPED_TRACE(name);
    PolicyEngine engine;
    const auto choice = engine.choose(fleet, workload, name, query);
    ASSERT_TRUE(choice.has_value());
    Fleet grown = fleet;
    grown.add(node("A10", 2, 5000));
    grown.add(node("L4", 4, 13000));
    PolicyEngine restarted;
    for (NodeSlot slot = 0; slot < grown.size(); ++slot) {
      if (!grown.gpus_fit(slot, query.need.gpu)) continue;
      const auto live = engine.cost(grown, workload, name, query, slot);
      const auto fresh = restarted.cost(grown, workload, name, query, slot);
      ASSERT_TRUE(live && fresh);
      EXPECT_EQ(live->value, fresh->value) << slot;
    }
  }
}

// A fleet larger than what one decision scores: rows fill over several decisions, and whatever fits is
// placed all the while.
TEST(ScoreRowsTest, ALargeFleetPlacesFromTheFirstDecisionOn) {
  Fleet fleet;
  NodeImage image;
  image.cpu_total = image.cpu_free = 4096;
  image.memory_total_mib = image.memory_free_mib = 4096;
  image.model = "L4";
  FleetGpu gpu;
  gpu.total_mib = gpu.left_mib = 1000;
  gpu.client_slots = 48;
  image.gpus = {gpu};
  const std::size_t nodes = kScoresPerDecision + 100;
  static_assert(kScoresPerDecision > 4 * kScoresOfLargeFleet);  // not all is scored in this test
  // Only the last node has room.
  for (std::size_t i = 0; i + 1 < nodes; ++i) {
    NodeImage full = image;
    full.cpu_free = 0;
    fleet.add(full);
  }
  fleet.add(image);
  PlacementQuery query;
  query.need.cpu_units = 1024;
  query.need.gpu.shared_memory_mib = 250;
  query.need.gpu.shared_containers = 1;
  Workload workload;
  PolicyEngine engine;
  for (int task = 0; task < 4; ++task) {
    const auto choice = engine.choose(fleet, workload, "balanced", query);
    ASSERT_TRUE(choice.has_value()) << task;
    EXPECT_EQ(choice->slot, nodes - 1);
    fleet.take(choice->slot, choice->gpus, query.need);
  }
  EXPECT_FALSE(engine.choose(fleet, workload, "balanced", query).has_value());
}

}  // namespace
}  // namespace cotenant::core
