// What a refusal tells the user: ECS's reason, NoFit or Infeasible, who failed which test, what
// came nearest and by how much it missed.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "builders.h"
#include "core/placement/placement.h"

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

Instance disconnected(Instance entry) {
  entry.agent_connected = false;
  return entry;
}

Instance without_attributes(Instance entry) {
  entry.registration.attributes.clear();
  return entry;
}

Instance with_used(Instance entry, std::int64_t cpu_units, std::int64_t memory_mib) {
  entry.used_cpu_units = cpu_units;
  entry.used_memory_mib = memory_mib;
  return entry;
}

TaskNeed with_cpu_and_memory(TaskNeed need, std::int64_t cpu_units, std::int64_t memory_mib) {
  need.cpu_units = cpu_units;
  need.memory_mib = memory_mib;
  return need;
}

struct Row {
  std::string_view name;
  std::vector<Instance> instances;
  TaskNeed need;
  PlacementTest want_test;
  bool want_infeasible;
  std::string want_instance;
  std::vector<std::string_view> want_in_detail;
};

void expect_refusals(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    std::vector<const Instance*> instances;
    for (const Instance& entry : row.instances) instances.push_back(&entry);
    const auto got = place(instances, row.need);
    ASSERT_FALSE(got.has_value()) << "placed on " << got->instance_id;
    const PlacementRefusal& refusal = got.error();
    EXPECT_EQ(reason(refusal.test), reason(row.want_test)) << refusal.detail;
    EXPECT_EQ(refusal.infeasible, row.want_infeasible) << refusal.detail;
    EXPECT_EQ(refusal.instance_id, row.want_instance) << refusal.detail;
    for (const std::string_view part : row.want_in_detail) {
      EXPECT_NE(refusal.detail.find(part), std::string::npos)
          << "no '" << part << "' in: " << refusal.detail;
    }
    const bool says_infeasible = refusal.detail.substr(0, 10) == "Infeasible";
    EXPECT_EQ(says_infeasible, row.want_infeasible && !row.instances.empty()) << refusal.detail;
  }
}

TEST(PlacementRefusalTest, NamesTheTestThatFailed) {
  expect_refusals({
      {"no instance",
       {},
       share_need(1),
       PlacementTest::kAgent,
       true,
       "",
       {"the cluster has no ACTIVE container instance"}},
      {"the agent is away",
       {disconnected(instance("a", 1, {idle_gpu()}))},
       share_need(1),
       PlacementTest::kAgent,
       false,
       "a",
       {"1 of 1 instances: AGENT", "the agent of instance a is not connected"}},
      {"the agent is away and the instance too small",
       {disconnected(instance("a", 1, {idle_gpu()}))},
       share_need(80001),
       PlacementTest::kAgent,
       true,
       "a",
       {}},
      {"the attribute is missing",
       {without_attributes(instance("a", 1, {idle_gpu()}))},
       share_need(1),
       PlacementTest::kAttribute,
       true,
       "a",
       {"1 of 1 instances: ATTRIBUTE", "instance a lacks the attribute",
        "ecs.capability.gpu-sharing-mps"}},
      {"CPU",
       {with_used(instance("a", 1, {}), 16000, 0)},
       with_cpu_and_memory({}, 1024, 0),
       PlacementTest::kCpu,
       false,
       "a",
       {"1 of 1 instances: RESOURCE:CPU", "needs 1024 CPU units", "384 of 16384 left",
        "640 missing"}},
      {"CPU that no instance has",
       {instance("a", 1, {})},
       with_cpu_and_memory({}, 16385, 0),
       PlacementTest::kCpu,
       true,
       "a",
       {"1 missing"}},
      {"memory",
       {with_used(instance("a", 1, {}), 0, 65000)},
       with_cpu_and_memory({}, 0, 1000),
       PlacementTest::kMemory,
       false,
       "a",
       {"1 of 1 instances: RESOURCE:MEMORY", "needs 1000 MiB of memory", "536 of 65536 MiB left",
        "464 MiB missing"}},
      {"memory that no instance has",
       {instance("a", 1, {})},
       with_cpu_and_memory({}, 0, 65537),
       PlacementTest::kMemory,
       true,
       "a",
       {"1 MiB missing"}},
      {"no GPU",
       {instance("a", 1, {})},
       share_need(1000),
       PlacementTest::kGpu,
       true,
       "a",
       {"1 of 1 instances: RESOURCE:GPU", "the task needs 1000 MiB on one GPU"}},
  });
}

TEST(PlacementRefusalTest, NamesTheInstancesThatCameFurthestAndNearest) {
  expect_refusals({
      {"least CPU missing, the first at a tie",
       {with_used(instance("a", 1, {}), 16000, 0), with_used(instance("b", 2, {}), 15900, 0),
        with_used(instance("c", 3, {}), 15900, 0)},
       with_cpu_and_memory({}, 1024, 0),
       PlacementTest::kCpu,
       false,
       "b",
       {"3 of 3 instances: RESOURCE:CPU", "540 missing"}},
      {"least memory missing",
       {with_used(instance("a", 1, {}), 0, 65000), with_used(instance("b", 2, {}), 0, 64900)},
       with_cpu_and_memory({}, 0, 1000),
       PlacementTest::kMemory,
       false,
       "b",
       {"364 MiB missing"}},
      {"counts per test, in the tests' order; the furthest test gives the reason",
       {instance("a", 1, {shared_gpu({{"t1", 79000}})}),
        disconnected(instance("b", 2, {idle_gpu()})), disconnected(instance("c", 3, {idle_gpu()})),
        without_attributes(instance("d", 4, {idle_gpu()})),
        with_used(instance("e", 5, {idle_gpu()}), 16384, 0),
        with_used(instance("f", 6, {idle_gpu()}), 0, 65536)},
       with_cpu_and_memory(share_need(2000), 1, 1),
       PlacementTest::kGpu,
       false,
       "a",
       {"2 of 6 instances: AGENT, 1 of 6 instances: ATTRIBUTE, 1 of 6 instances: RESOURCE:CPU, "
        "1 of 6 instances: RESOURCE:MEMORY, 1 of 6 instances: RESOURCE:GPU",
        "1000 MiB missing"}},
  });
}

TEST(PlacementRefusalTest, NamesTheGpuThatCameNearestForAShare) {
  expect_refusals({
      {"the most MiB left, across instances",
       {instance("a", 1, {shared_gpu({{"t1", 60000}})}),
        instance("b", 2, {shared_gpu({{"t2", 70000}}), shared_gpu({{"t3", 50000}})})},
       share_need(40000),
       PlacementTest::kGpu,
       false,
       "b",
       {"the task needs 40000 MiB on one GPU", "GPU-b-1 (H100) on instance b",
        "has 30000 of 80000 MiB left, the rest held by task t3", "10000 MiB missing"}},
      {"an idle GPU that is too small has no holders",
       {instance("a", 1, {idle_gpu(24000)})},
       share_need(24001),
       PlacementTest::kGpu,
       true,
       "a",
       {"GPU-a-0", "has 24000 of 24000 MiB left: 1 MiB missing"}},
      {"three holders are shown, the others counted",
       {instance("a", 1, {shared_gpu({{"t1", 1}, {"t2", 1}, {"t3", 1}, {"t4", 1}, {"t5", 1}})})},
       share_need(80000),
       PlacementTest::kGpu,
       false,
       "a",
       {"held by task t1, t2, t3 and 2 more", "5 MiB missing"}},
      {"three holders are all shown",
       {instance("a", 1, {shared_gpu({{"t1", 1}, {"t2", 1}, {"t3", 1}})})},
       share_need(80000),
       PlacementTest::kGpu,
       false,
       "a",
       {"held by task t1, t2, t3: 3 MiB missing"}},
      {"dedicated",
       {instance("a", 1, {dedicated_gpu("t1")})},
       share_need(1000),
       PlacementTest::kGpu,
       false,
       "a",
       {"GPU-a-0", "is DEDICATED to task t1"}},
      {"a dedicated GPU comes after a full one",
       {instance("a", 1, {dedicated_gpu("t1"), shared_gpu({{"t2", 80000}})})},
       share_need(1000),
       PlacementTest::kGpu,
       false,
       "a",
       {"GPU-a-1", "has 0 of 80000 MiB left, the rest held by task t2", "1000 MiB missing"}},
      {"unreadable memory",
       {instance("a", 1, {unreadable_gpu()})},
       share_need(1000),
       PlacementTest::kGpu,
       true,
       "a",
       {"GPU-a-0", "takes whole-GPU work only, because its memory cannot be read"}},
      {"a GPU with unreadable memory comes after a full one",
       {instance("a", 1, {unreadable_gpu(), shared_gpu({{"t2", 80000}})})},
       share_need(1000),
       PlacementTest::kGpu,
       false,
       "a",
       {"GPU-a-1", "1000 MiB missing"}},
      {"client slots",
       {instance("a", 1, {{80000, 4, {{"t1", 100, 3}}}})},
       share_need(1000),
       PlacementTest::kGpu,
       false,
       "a",
       {"GPU-a-0", "has 3 of 4 MPS client slots taken (one stays free for the probe)"}},
      {"more containers than slots",
       {instance("a", 1, {{80000, 4, {}}})},
       share_need(1000, 4),
       PlacementTest::kGpu,
       true,
       "a",
       {"has 0 of 4 MPS client slots taken"}},
  });
}

TEST(PlacementRefusalTest, NamesWhatIsInTheWayOfWholeGpus) {
  expect_refusals({
      {"dedicated",
       {instance("a", 1, {dedicated_gpu("t1")})},
       whole_need(1),
       PlacementTest::kGpu,
       false,
       "a",
       {"the task needs 1 idle GPU(s) on one instance", "GPU-a-0", "is DEDICATED to task t1",
        "has 0 of 1 GPUs idle"}},
      {"shared",
       {instance("a", 1, {shared_gpu({{"t1", 300, 2}, {"t2", 700}})})},
       whole_need(1),
       PlacementTest::kGpu,
       false,
       "a",
       {"GPU-a-0", "is shared (NVIDIA_MPS): 3 container(s) hold 1000 of 80000 MiB, task t1, t2",
        "0 of 1 GPUs idle"}},
      {"the GPU with fewest containers is nearest",
       {instance("a", 1, {shared_gpu({{"t1", 300, 3}}), shared_gpu({{"t2", 700, 2}})})},
       whole_need(1),
       PlacementTest::kGpu,
       false,
       "a",
       {"GPU-a-1"}},
      {"ALL",
       {instance("a", 1, {idle_gpu(), dedicated_gpu("t1")})},
       all_gpus_need(),
       PlacementTest::kGpu,
       false,
       "a",
       {"the task needs all GPUs of an instance idle", "GPU-a-1", "is DEDICATED to task t1",
        "1 of 2 GPUs idle"}},
      {"ALL where there is no GPU",
       {instance("a", 1, {})},
       all_gpus_need(),
       PlacementTest::kGpu,
       true,
       "a",
       {"RESOURCE:GPU"}},
      {"more than any instance has: the shortfall is still told",
       {instance("a", 1, {idle_gpu(), idle_gpu()})},
       whole_need(4),
       PlacementTest::kGpu,
       true,
       "a",
       {"the task needs 4 idle GPU(s) on one instance", "instance a", "2 of 2 GPUs idle"}},
      // Nearest is the instance that lacks the fewest idle GPUs.
      {"one more idle GPU would do on b, two would on a",
       {instance("a", 1, {dedicated_gpu("t1"), dedicated_gpu("t2")}),
        instance("b", 2, {idle_gpu(), shared_gpu({{"t3", 10, 2}})})},
       whole_need(2),
       PlacementTest::kGpu,
       false,
       "b",
       {"GPU-b-1", "1 of 2 GPUs idle"}},
  });
}

TEST(PlacementRefusalTest, InfeasibleOnlyWhenNoEmptyInstanceWouldDo) {
  expect_refusals({
      {"one of two would do",
       {instance("a", 1, {idle_gpu(24000)}), instance("b", 2, {shared_gpu({{"t", 79999}})})},
       share_need(30000),
       PlacementTest::kGpu,
       false,
       "a",
       {}},
      {"none would",
       {instance("a", 1, {idle_gpu(24000)}), instance("b", 2, {idle_gpu(29999)})},
       share_need(30000),
       PlacementTest::kGpu,
       true,
       "b",
       {}},
      {"whole GPUs that are busy",
       {instance("a", 1, {dedicated_gpu("t"), dedicated_gpu("u")})},
       whole_need(2),
       PlacementTest::kGpu,
       false,
       "a",
       {}},
      {"CPU on one, GPU on the other",
       {with_used(instance("a", 1, {idle_gpu(1000)}), 0, 0), instance("b", 2, {})},
       with_cpu_and_memory(share_need(2000), 1, 1),
       PlacementTest::kGpu,
       true,
       "a",
       {}},
  });
}

}  // namespace
}  // namespace cotenant::core
