// The fleet of each cluster follows every command: no rule may forget to tell it.
#include <gtest/gtest.h>

#include "core/placement/fleet_mirror.h"
#include "core/placement/tight_policy.h"
#include "random_history.h"
#include "unit/sanitized.h"

namespace cotenant::core {
namespace {

std::string describe(const Fleet& fleet, NodeSlot slot) {
  const FleetNode& node = fleet.node(slot);
  const IndexPartition& partition = fleet.index().partitions[node.partition];
  std::string text = partition.same_attributes ? partition.attributes + ": " : "other: ";
  text += std::to_string(node.cpu_free) + " " + std::to_string(node.memory_free_mib) +
          (node.placeable ? " on" : " off") + (node.can_share ? " shares" : "");
  for (std::size_t i = 0; i < node.gpu_count; ++i) {
    const FleetGpu& gpu = fleet.gpu(slot, i);
    text += " | " + std::to_string(gpu.left_mib) + " " + std::to_string(gpu.containers) +
            (gpu.dedicated ? " dedicated" : "") + (gpu.healthy ? "" : " ill");
  }
  return text;
}

TEST(FleetMirrorTest, FollowsEveryCommand) {
  constexpr int kHistories = tests::kSanitized ? 4 : 40;
  for (int seed = 5000; seed < 5000 + kHistories; ++seed) {
    test::RandomHistory history(static_cast<std::uint64_t>(seed));
    for (int step = 0; step < 400; ++step) {
      static_cast<void>(history.step(history.next()));
      if (step % 7 == 0 && !history.state().instances.empty()) {
        const Instance& last = history.state().instances.rbegin()->second;
        const std::string cluster = last.registration.cluster;
        const TargetAttribute zone{last.registration.id, "zone", std::to_string(step % 3)};
        static_cast<void>(step % 2 == 0 ? history.step(PutAttributes{cluster, {zone}})
                                        : history.step(DeleteAttributes{cluster, {zone}}));
      }
      for (const auto& [id, instance] : history.state().instances) {
        ASSERT_TRUE(instance.fleet_slot.has_value());
        const ClusterPlacement& placement =
            history.state().placements.at(instance.registration.cluster);
        Fleet fresh;
        const NodeSlot slot = fresh.add(image_of(instance));
        ASSERT_EQ(describe(placement.fleet, *instance.fleet_slot), describe(fresh, slot))
            << "seed " << seed << " step " << step << " instance " << id;
        ASSERT_EQ(placement.instance_ids[*instance.fleet_slot], id);
      }
    }
  }
}

}  // namespace
}  // namespace cotenant::core
