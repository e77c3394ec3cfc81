// A second implementation of the placement rules, written from the design's text with lists and
// filters and its own book-keeping, against place() on random clusters.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "core/placement/placement.h"
#include "unit/sanitized.h"

namespace cotenant::core {
namespace {

// One side of the book: plain numbers, nothing of core's.
struct PlainGpu {
  bool readable = true;
  std::int64_t total_mib = 0;
  int slots = 0;
  std::int64_t shared_mib = 0;
  int clients = 0;
  bool dedicated = false;
};

struct PlainInstance {
  std::string id;
  std::int64_t number = 0;
  bool connected = true;
  bool sharing = true;
  std::int64_t cpu = 0, cpu_used = 0;
  std::int64_t memory = 0, memory_used = 0;
  std::vector<PlainGpu> gpus;
};

struct Option {
  std::size_t instance = 0;
  std::vector<std::size_t> gpus;
};

bool share_fits(const PlainGpu& gpu, const TaskGpuNeed& need) {
  return gpu.readable && !gpu.dedicated &&
         gpu.total_mib - gpu.shared_mib >= need.shared_memory_mib &&
         gpu.slots - gpu.clients - 1 >= need.shared_containers;
}

bool idle(const PlainGpu& gpu) {
  return !gpu.dedicated && gpu.clients == 0;
}

// Every way to place the need on this instance.
std::vector<Option> options(const PlainInstance& on, std::size_t index, const TaskGpuNeed& need) {
  if (need.is_none()) return {{index, {}}};
  std::vector<Option> out;
  if (need.is_shared()) {
    for (std::size_t gpu = 0; gpu < on.gpus.size(); ++gpu) {
      if (share_fits(on.gpus[gpu], need)) out.push_back({index, {gpu}});
    }
    return out;
  }
  std::vector<std::size_t> idle_gpus;
  for (std::size_t gpu = 0; gpu < on.gpus.size(); ++gpu) {
    if (idle(on.gpus[gpu])) idle_gpus.push_back(gpu);
  }
  const std::size_t wanted =
      need.whole_all ? on.gpus.size() : static_cast<std::size_t>(need.whole_count);
  if (wanted == 0 || idle_gpus.size() < wanted) return out;
  idle_gpus.resize(wanted);
  return {{index, idle_gpus}};
}

// The name of the first test failed, or nothing.
std::optional<PlacementTest> refusal(const PlainInstance& on, const TaskNeed& need) {
  if (!on.connected) return PlacementTest::kAgent;
  if (need.gpu.is_shared() && !on.sharing) return PlacementTest::kAttribute;
  if (on.cpu_used + need.cpu_units > on.cpu) return PlacementTest::kCpu;
  if (on.memory_used + need.memory_mib > on.memory) return PlacementTest::kMemory;
  if (options(on, 0, need.gpu).empty()) return PlacementTest::kGpu;
  return std::nullopt;
}

PlainInstance emptied(PlainInstance on) {
  on.connected = true;
  on.cpu_used = on.memory_used = 0;
  for (PlainGpu& gpu : on.gpus) {
    gpu.shared_mib = 0;
    gpu.clients = 0;
    gpu.dedicated = false;
  }
  return on;
}

// Keeps the options for which `measure` is least.
template <class Measure>
void keep_least(std::vector<Option>& left, Measure measure) {
  std::int64_t least = INT64_MAX;
  for (const Option& option : left) least = std::min<std::int64_t>(least, measure(option));
  std::vector<Option> kept;
  for (const Option& option : left) {
    if (measure(option) == least) kept.push_back(option);
  }
  left = kept;
}

struct Answer {
  std::optional<Option> option;
  PlacementTest test = PlacementTest::kAgent;
  bool infeasible = false;
};

Answer answer(const std::vector<PlainInstance>& cluster, const TaskNeed& need) {
  Answer out;
  std::vector<Option> left;
  out.infeasible = true;
  for (std::size_t i = 0; i < cluster.size(); ++i) {
    const auto failed = refusal(cluster[i], need);
    if (!refusal(emptied(cluster[i]), need)) out.infeasible = false;
    if (failed) {
      if (*failed > out.test) out.test = *failed;
      continue;
    }
    for (const Option& option : options(cluster[i], i, need.gpu)) left.push_back(option);
  }
  if (left.empty()) return out;

  const auto of = [&](const Option& option) -> const PlainInstance& {
    return cluster[option.instance];
  };
  if (need.gpu.is_shared()) {
    const auto gpu = [&](const Option& option) -> const PlainGpu& {
      return of(option).gpus[option.gpus[0]];
    };
    keep_least(left, [&](const Option& o) { return gpu(o).total_mib - gpu(o).shared_mib; });
    keep_least(left, [&](const Option& o) { return gpu(o).clients > 0 ? 0 : 1; });
  } else if (need.gpu.is_whole()) {
    keep_least(left, [&](const Option& o) {
      return std::count_if(of(o).gpus.begin(), of(o).gpus.end(), idle);
    });
  } else {
    keep_least(left, [&](const Option& o) {
      std::int64_t mib = 0;
      for (const PlainGpu& gpu : of(o).gpus) {
        if (gpu.readable && !gpu.dedicated) mib += gpu.total_mib - gpu.shared_mib;
      }
      return mib;
    });
  }
  keep_least(left, [&](const Option& o) { return of(o).number; });
  keep_least(left, [&](const Option& o) {
    return o.gpus.empty() ? 0 : static_cast<std::int64_t>(o.gpus[0]);
  });
  out.option = left.front();
  return out;
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : prng_(seed) {}
  // 0 .. sides - 1.
  int roll(int sides) { return static_cast<int>(prng_.next() % static_cast<std::uint64_t>(sides)); }
  bool one_in(int sides) { return roll(sides) == 0; }

 private:
  base::Prng prng_;
};

PlainInstance random_instance(Dice& dice, std::int64_t number) {
  PlainInstance out;
  out.id = "i" + std::to_string(number);
  out.number = number;
  out.connected = !dice.one_in(8);
  out.sharing = !dice.one_in(8);
  out.cpu = 1024 * (1 + dice.roll(8));
  out.memory = 1024 * (1 + dice.roll(8));
  const int gpus = dice.roll(5);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    // Few sizes, so that ties are common.
    out.gpus.push_back({!dice.one_in(10), 1000 * (2 + dice.roll(3)), 2 + dice.roll(5)});
  }
  return out;
}

Instance to_core(const PlainInstance& plain) {
  Instance out;
  out.registration.id = plain.id;
  out.registration.cpu_units = plain.cpu;
  out.registration.memory_mib = plain.memory;
  out.number = plain.number;
  out.agent_connected = plain.connected;
  if (plain.sharing) out.registration.attributes.emplace(kSharingAttribute, "");
  for (std::size_t gpu = 0; gpu < plain.gpus.size(); ++gpu) {
    GpuDevice device{plain.id + "-" + std::to_string(gpu), "sim", {}, plain.gpus[gpu].slots};
    if (plain.gpus[gpu].readable) device.memory_mib = plain.gpus[gpu].total_mib;
    out.registration.gpus.push_back(device);
  }
  out.gpus = GpuLedger(out.registration.gpus);
  return out;
}

TaskNeed random_need(Dice& dice) {
  TaskNeed need;
  need.cpu_units = 128 * dice.roll(4);
  need.memory_mib = 128 * dice.roll(4);
  switch (dice.roll(8)) {
    case 0:
      break;
    case 1:
      need.gpu.whole_count = 1 + dice.roll(3);
      break;
    case 2:
      if (dice.one_in(3)) {
        need.gpu.whole_all = true;
      } else {
        need.gpu.whole_count = 1;
      }
      break;
    default:
      need.gpu.shared_containers = 1 + dice.roll(3);
      need.gpu.shared_memory_mib = 250 * need.gpu.shared_containers * (1 + dice.roll(6));
      break;
  }
  return need;
}

// A task that was placed, so that it can be taken away again on both sides.
struct Held {
  std::string id;
  TaskNeed need;
  Option at;
};

void apply_to(PlainInstance& plain, const Held& held, int sign) {
  plain.cpu_used += sign * held.need.cpu_units;
  plain.memory_used += sign * held.need.memory_mib;
  for (const std::size_t gpu : held.at.gpus) {
    if (held.need.gpu.is_shared()) {
      plain.gpus[gpu].shared_mib += sign * held.need.gpu.shared_memory_mib;
      plain.gpus[gpu].clients += sign * held.need.gpu.shared_containers;
    } else {
      plain.gpus[gpu].dedicated = sign > 0;
    }
  }
}

void hold(Instance& instance, const Held& held) {
  instance.used_cpu_units += held.need.cpu_units;
  instance.used_memory_mib += held.need.memory_mib;
  for (const std::size_t gpu : held.at.gpus) {
    if (held.need.gpu.is_shared()) {
      instance.gpus.reserve_share(gpu, held.id, held.need.gpu.shared_memory_mib,
                                  held.need.gpu.shared_containers);
    } else {
      instance.gpus.reserve_whole(gpu, held.id);
    }
  }
}

void let_go(Instance& instance, const Held& held) {
  instance.used_cpu_units -= held.need.cpu_units;
  instance.used_memory_mib -= held.need.memory_mib;
  instance.gpus.release(held.id);
}

TEST(PlacementOracleTest, PlaceAgreesWithTheSecondImplementation) {
  constexpr int kClusters = tests::kSanitized ? 400 : 4000;
  constexpr int kTasksPerCluster = 60;
  int placed = 0;
  int refused = 0;
  int infeasible = 0;
  for (int seed = 0; seed < kClusters; ++seed) {
    Dice dice(static_cast<std::uint64_t>(seed));
    std::vector<PlainInstance> plain;
    std::vector<Instance> instances;
    const int size = dice.roll(6);
    for (int i = 0; i < size; ++i) {
      plain.push_back(random_instance(dice, i + 1));
      instances.push_back(to_core(plain.back()));
    }
    std::vector<const Instance*> pointers;
    for (const Instance& entry : instances) pointers.push_back(&entry);
    std::vector<Held> holding;

    for (int step = 0; step < kTasksPerCluster; ++step) {
      if (!holding.empty() && dice.one_in(3)) {
        const auto at = static_cast<std::size_t>(dice.roll(static_cast<int>(holding.size())));
        apply_to(plain[holding[at].at.instance], holding[at], -1);
        let_go(instances[holding[at].at.instance], holding[at]);
        holding.erase(holding.begin() + static_cast<std::ptrdiff_t>(at));
      }
      const TaskNeed need = random_need(dice);
      const Answer want = answer(plain, need);
      const auto got = place(pointers, need);
      ASSERT_EQ(got.has_value(), want.option.has_value()) << "seed " << seed << " step " << step;
      if (!got) {
        ASSERT_EQ(reason(got.error().test), reason(want.test))
            << "seed " << seed << " step " << step;
        ASSERT_EQ(got.error().infeasible, want.infeasible) << "seed " << seed << " step " << step;
        ASSERT_EQ(got.error().instance_id.empty(), instances.empty());
        ++refused;
        infeasible += want.infeasible ? 1 : 0;
        continue;
      }
      ASSERT_EQ(got->instance_id, plain[want.option->instance].id)
          << "seed " << seed << " step " << step;
      ASSERT_EQ(got->gpus, want.option->gpus) << "seed " << seed << " step " << step;
      ++placed;
      holding.push_back({"t" + std::to_string(step), need, *want.option});
      apply_to(plain[want.option->instance], holding.back(), +1);
      hold(instances[want.option->instance], holding.back());
    }
  }
  // The clusters are neither empty nor endless: every outcome was compared often.
  EXPECT_GE(placed + refused, kClusters * 50);
  EXPECT_GE(placed, kClusters * 12);
  EXPECT_GE(refused - infeasible, kClusters * 5);
  EXPECT_GE(infeasible, kClusters * 5);
}

}  // namespace
}  // namespace cotenant::core
