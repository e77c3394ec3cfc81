#include "core/placement/placement.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "builders.h"

namespace cotenant::core {
namespace {

using test::all_gpus_need;
using test::dedicated_gpu;
using test::idle_gpu;
using test::instance;
using test::share_need;
using test::shared_gpu;
using test::unreadable_gpu;
using test::whole_need;

using Gpus = std::vector<std::size_t>;

std::vector<const Instance*> pointers(const std::vector<Instance>& instances) {
  std::vector<const Instance*> out;
  for (const Instance& entry : instances) out.push_back(&entry);
  return out;
}

struct PlacementRow {
  std::string_view name;
  std::vector<Instance> instances;
  TaskNeed need;
  std::string want_instance;
  Gpus want_gpus;
};

void expect_placements(const std::vector<PlacementRow>& rows) {
  for (const PlacementRow& row : rows) {
    SCOPED_TRACE(row.name);
    const auto got = place(pointers(row.instances), row.need);
    ASSERT_TRUE(got.has_value()) << got.error().detail;
    EXPECT_EQ(got->instance_id, row.want_instance);
    EXPECT_EQ(got->gpus, row.want_gpus);
  }
}

TEST(PlaceTest, AShareGoesToTheTightestGpu) {
  expect_placements({
      {"an idle GPU", {instance("a", 1, {idle_gpu()})}, share_need(80000), "a", {0}},
      {"least MiB left wins within an instance",
       {instance("a", 1,
                 {idle_gpu(), shared_gpu({{"t", 50000}}), shared_gpu({{"t", 20000}}), idle_gpu()})},
       share_need(10000),
       "a",
       {1}},
      {"a GPU that is too full is passed over",
       {instance("a", 1, {idle_gpu(), shared_gpu({{"t", 50000}}), shared_gpu({{"t", 20000}})})},
       share_need(30001),
       "a",
       {2}},
      {"least MiB left wins across instances",
       {instance("a", 1, {shared_gpu({{"t", 1000}})}), instance("b", 2, {idle_gpu(24000)})},
       share_need(20000),
       "b",
       {0}},
      {"an exact fit",
       {instance("a", 1, {idle_gpu(), shared_gpu({{"t", 79999}})})},
       share_need(1),
       "a",
       {1}},
      {"at the same remainder a GPU in NVIDIA_MPS mode comes first",
       {instance("a", 1, {idle_gpu(40000), shared_gpu({{"t", 40000}})})},
       share_need(100),
       "a",
       {1}},
      {"... also when its instance registered later",
       {instance("a", 1, {idle_gpu(40000)}), instance("b", 2, {shared_gpu({{"t", 40000}})})},
       share_need(100),
       "b",
       {0}},
      {"a dedicated GPU takes no share",
       {instance("a", 1, {dedicated_gpu("t"), idle_gpu()})},
       share_need(100),
       "a",
       {1}},
      {"a GPU with unreadable memory takes no share",
       {instance("a", 1, {unreadable_gpu(), idle_gpu()})},
       share_need(100),
       "a",
       {1}},
      {"ties go to the lowest registration number, whatever the order given",
       {instance("b", 7, {idle_gpu()}), instance("a", 9, {idle_gpu()}),
        instance("c", 8, {idle_gpu()})},
       share_need(100),
       "b",
       {0}},
      {"then to the lowest GPU index",
       {instance("a", 1, {idle_gpu(), idle_gpu(), idle_gpu()})},
       share_need(100),
       "a",
       {0}},
  });
}

TEST(PlaceTest, TheSharesOfATaskGoOntoOneGpuWithRoomForTheirSum) {
  expect_placements({
      {"the sum decides, not each part",
       {instance("a", 1, {shared_gpu({{"t", 50000}}), shared_gpu({{"t", 50000}}), idle_gpu()})},
       share_need(40000, 2),
       "a",
       {2}},
      {"client slots count per container",
       {instance("a", 1, {{80000, 6, {{"t", 30000, 4}}}, idle_gpu()})},
       share_need(100, 2),
       "a",
       {1}},
      {"one container still has a slot",
       {instance("a", 1, {{80000, 6, {{"t", 30000, 4}}}, idle_gpu()})},
       share_need(100, 1),
       "a",
       {0}},
  });
  // Two GPUs that are half free do not make one that is free.
  const std::vector<Instance> halves = {
      instance("a", 1, {shared_gpu({{"t", 40000}}), shared_gpu({{"t", 40000}})})};
  EXPECT_FALSE(place(pointers(halves), share_need(40001, 2)).has_value());
}

TEST(PlaceTest, WholeGpusGoWhereFewestAreIdle) {
  expect_placements({
      {"lowest idle indexes",
       {instance("a", 1,
                 {shared_gpu({{"t", 1}}), idle_gpu(), dedicated_gpu("u"), idle_gpu(), idle_gpu()})},
       whole_need(2),
       "a",
       {1, 3}},
      {"fewest idle GPUs that suffice",
       {instance("a", 1, {idle_gpu(), idle_gpu(), idle_gpu(), idle_gpu()}),
        instance("b", 2, {idle_gpu(), idle_gpu()}), instance("c", 3, {idle_gpu()})},
       whole_need(2),
       "b",
       {0, 1}},
      {"idle ones count, not installed ones",
       {instance("a", 1, {idle_gpu(), idle_gpu()}),
        instance("b", 2, {dedicated_gpu("t"), shared_gpu({{"u", 5}}), idle_gpu()})},
       whole_need(1),
       "b",
       {2}},
      {"tie: registration number",
       {instance("a", 2, {idle_gpu()}), instance("b", 1, {idle_gpu()})},
       whole_need(1),
       "b",
       {0}},
      {"unreadable memory does not matter",
       {instance("a", 1, {unreadable_gpu()})},
       whole_need(1),
       "a",
       {0}},
      {"ALL takes every GPU of the instance",
       {instance("a", 1, {idle_gpu(), idle_gpu(), idle_gpu()})},
       all_gpus_need(),
       "a",
       {0, 1, 2}},
      {"ALL passes over an instance with a busy GPU",
       {instance("a", 1, {idle_gpu(), dedicated_gpu("t")}),
        instance("b", 2, {idle_gpu(), idle_gpu(), idle_gpu()})},
       all_gpus_need(),
       "b",
       {0, 1, 2}},
      {"ALL prefers the instance with fewest GPUs, and passes over one without",
       {instance("a", 1, {idle_gpu(), idle_gpu()}), instance("b", 2, {}),
        instance("c", 3, {idle_gpu()})},
       all_gpus_need(),
       "c",
       {0}},
  });
}

TEST(PlaceTest, ATaskWithoutGpuGoesWhereLeastGpuMemoryIsLeft) {
  expect_placements({
      {"an instance without GPU",
       {instance("a", 1, {idle_gpu()}), instance("b", 2, {})},
       {},
       "b",
       {}},
      {"least left in all GPUs",
       {instance("a", 1, {idle_gpu(), dedicated_gpu("t")}),
        instance("b", 2, {shared_gpu({{"t", 60000}}), shared_gpu({{"u", 50000}})})},
       {},
       "b",
       {}},
      {"tie: registration number",
       {instance("a", 2, {idle_gpu()}), instance("b", 1, {idle_gpu()})},
       {},
       "b",
       {}},
      {"it needs no sharing attribute",
       {[] {
         Instance plain = instance("a", 1, {});
         plain.registration.attributes.clear();
         return plain;
       }()},
       {},
       "a",
       {}},
  });
}

TEST(PlaceTest, AnInstanceMustPassEveryTest) {
  Instance good = instance("good", 9, {idle_gpu()});
  Instance disconnected = instance("disconnected", 1, {idle_gpu()});
  disconnected.agent_connected = false;
  Instance no_attribute = instance("no-attribute", 2, {idle_gpu()});
  no_attribute.registration.attributes.clear();
  Instance no_cpu = instance("no-cpu", 3, {idle_gpu()});
  no_cpu.used_cpu_units = no_cpu.registration.cpu_units - 255;
  Instance no_memory = instance("no-memory", 4, {idle_gpu()});
  no_memory.used_memory_mib = no_memory.registration.memory_mib - 511;
  Instance no_gpu = instance("no-gpu", 5, {dedicated_gpu("t")});
  TaskNeed need = share_need(1000);
  need.cpu_units = 256;
  need.memory_mib = 512;
  expect_placements({{"only the last passes",
                      {disconnected, no_attribute, no_cpu, no_memory, no_gpu, good},
                      need,
                      "good",
                      {0}}});

  // What just suffices, suffices.
  no_cpu.used_cpu_units -= 1;
  no_memory.used_memory_mib -= 1;
  expect_placements({{"CPU to the last unit", {no_cpu}, need, "no-cpu", {0}},
                     {"memory to the last MiB", {no_memory}, need, "no-memory", {0}}});
}

// The case on the front page: half-GPU tasks fill every GPU, two each, and the next one is refused.
TEST(PlaceTest, SixteenHalvesOnEightGpusAreTwoAGpu) {
  std::vector<Instance> cluster = {
      instance("a", 1, {idle_gpu(), idle_gpu(), idle_gpu(), idle_gpu()}),
      instance("b", 2, {idle_gpu(), idle_gpu(), idle_gpu(), idle_gpu()})};
  std::map<std::string, std::size_t> by_id = {{"a", 0}, {"b", 1}};
  const TaskNeed half = share_need(test::kGpuMib / 2);
  for (int task = 0; task < 16; ++task) {
    const auto got = place(pointers(cluster), half);
    ASSERT_TRUE(got.has_value()) << "half " << task << ": " << got.error().detail;
    ASSERT_EQ(got->gpus.size(), 1U);
    cluster[by_id.at(got->instance_id)].gpus.reserve_share(got->gpus[0], "t" + std::to_string(task),
                                                           half.gpu.shared_memory_mib, 1);
  }
  for (const Instance& entry : cluster) {
    for (std::size_t gpu = 0; gpu < entry.gpus.size(); ++gpu) {
      EXPECT_EQ(entry.gpus.container_count(gpu), 2);
      EXPECT_EQ(entry.gpus.remaining_mib(gpu), 0);
      EXPECT_EQ(entry.gpus.mode(gpu), SharingMode::kNvidiaMps);
    }
  }
  const auto refused = place(pointers(cluster), half);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().test, PlacementTest::kGpu);
  EXPECT_FALSE(refused.error().infeasible);
}

// Registration lets no such need through; place() must not guess when it comes nevertheless.
TEST(PlaceDeathTest, ANeedThatMixesOptionsStopsTheProgram) {
  const std::vector<Instance> cluster = {instance("a", 1, {idle_gpu(), idle_gpu()})};
  TaskNeed mixed = share_need(1000);
  mixed.gpu.whole_count = 1;
  EXPECT_DEATH(static_cast<void>(place(pointers(cluster), mixed)), "assertion failed");
}

}  // namespace
}  // namespace cotenant::core
