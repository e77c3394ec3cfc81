// A random cluster as a Fleet: nodes join, leave, drain and come back, GPUs fail and recover, tasks
// come and go. The same seed gives the same history.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "core/placement/fleet.h"
#include "core/placement/placement_query.h"

namespace cotenant::core::test {

class FleetHistory {
 public:
  struct Held {
    PlacementChoice choice;
    TaskNeed need;
  };

  FleetHistory(std::uint64_t seed, int nodes) : prng_(seed) {
    for (int i = 0; i < nodes; ++i) join();
  }

  Fleet& fleet() { return fleet_; }
  int roll(int sides) { return static_cast<int>(prng_.next() % static_cast<std::uint64_t>(sides)); }
  bool one_in(int sides) { return roll(sides) == 0; }

  // Anything but a placement. Joining and leaving are rare, so that the cluster keeps its size.
  void disturb() {
    const int dice = roll(240);
    if (dice == 0) {
      join();
    } else if (dice == 1) {
      leave();
    } else if (dice < 40) {
      change_state();
    } else if (dice < 80) {
      change_health();
    } else {
      release_one();
    }
  }

  PlacementQuery query() {
    PlacementQuery query;
    TaskNeed& need = query.need;
    need.cpu_units = 256 * roll(6);
    need.memory_mib = 512 * roll(4);
    const int kind = roll(10);
    if (kind == 0) {
      need.gpu.whole_count = 1 + roll(3);
    } else if (kind == 1) {
      need.gpu.whole_all = true;
    } else if (kind < 9) {
      need.gpu.shared_containers = 1 + roll(2);
      need.gpu.shared_memory_mib = 500 * (1 + roll(8));
    }
    if (one_in(5)) {
      query.models = one_in(2) ? "L4" : "H100";
      std::vector<bool> classes;
      for (const NodeClass& each : fleet_.classes()) classes.push_back(each.model == query.models);
      query.classes = classes;
    }
    if (one_in(5)) {
      // A third of the nodes says so, as if an expression had asked.
      const std::string wanted = std::to_string(roll(3));
      query.constraints.push_back(
          {"zone",
           [this, wanted](NodeSlot slot) { return images_[slot].attributes.starts_with(wanted); },
           "zone", true});
    }
    if (one_in(6)) {
      const auto odd = static_cast<NodeSlot>(roll(2));
      query.constraints.push_back({"odd", [odd](NodeSlot slot) { return slot % 2 == odd; }});
    }
    return query;
  }

  void take(const PlacementChoice& choice, const TaskNeed& need) {
    fleet_.take(choice.slot, choice.gpus, need);
    held_.push_back({choice, need});
  }
  std::size_t held() const { return held_.size(); }

 private:
  void join() {
    NodeImage image;
    image.cpu_total = image.cpu_free = 1024 * (1 + roll(8));
    image.memory_total_mib = image.memory_free_mib = 1024 * (1 + roll(8));
    image.can_share = !one_in(6);
    image.connected = !one_in(6);
    image.model = one_in(2) ? "L4" : "H100";
    image.attributes = std::to_string(roll(3));
    // In a large cluster there are more sets than the index keeps apart.
    if (one_in(2)) image.attributes += "-" + std::to_string(roll(60));
    const int gpus = roll(6);
    for (int i = 0; i < gpus; ++i) {
      FleetGpu gpu;
      // Few sizes, so that ties are common; some cannot be read.
      gpu.total_mib = gpu.left_mib = one_in(10) ? 0 : 1000 * (2 + roll(3));
      gpu.client_slots = static_cast<std::int16_t>(2 + roll(6));
      image.gpus.push_back(gpu);
    }
    images_.push_back(image);
    fleet_.add(image);
  }

  std::optional<NodeSlot> any_present() {
    if (fleet_.size() == 0) return std::nullopt;
    const auto slot = static_cast<NodeSlot>(roll(static_cast<int>(fleet_.size())));
    if (!fleet_.node(slot).present) return std::nullopt;
    return slot;
  }

  void leave() {
    const auto slot = any_present();
    if (!slot) return;
    for (const Held& each : held_) {
      if (each.choice.slot == *slot) return;
    }
    fleet_.remove(*slot);
  }

  // Draining, disconnection, and the way back; what the node holds, it holds.
  void change_state() {
    const auto slot = any_present();
    if (!slot) return;
    const FleetNode& node = fleet_.node(*slot);
    NodeImage image = images_[*slot];
    image.cpu_free = node.cpu_free;
    image.memory_free_mib = node.memory_free_mib;
    image.gpus.assign(fleet_.gpus(*slot), fleet_.gpus(*slot) + node.gpu_count);
    image.active = !one_in(4);
    image.connected = !one_in(4);
    fleet_.put(*slot, image);
  }

  void change_health() {
    const auto slot = any_present();
    if (!slot || fleet_.node(*slot).gpu_count == 0) return;
    const auto gpu = static_cast<std::size_t>(roll(fleet_.node(*slot).gpu_count));
    fleet_.set_gpu_health(*slot, gpu, !one_in(3));
  }

  void release_one() {
    if (held_.empty()) return;
    std::swap(held_[static_cast<std::size_t>(roll(static_cast<int>(held_.size())))], held_.back());
    fleet_.give_back(held_.back().choice.slot, held_.back().choice.gpus, held_.back().need);
    held_.pop_back();
  }

  base::Prng prng_;
  Fleet fleet_;
  std::vector<NodeImage> images_;
  std::vector<Held> held_;
};

}  // namespace cotenant::core::test
