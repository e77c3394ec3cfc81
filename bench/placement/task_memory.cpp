// How much memory a running task takes in the control plane's state: tasks of one container with a share
// of a GPU, placed by RunTask on instances of 8 GPUs, as the heap grows by them. With what placement and
// the ledgers keep of each; without what the store and the agent keep.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdlib>
#include <string>
#include <variant>

#include "base/prng.h"
#include "core/reducer.h"

namespace {

using namespace cotenant;

void must(core::State& state, const core::Command& command, base::Prng& prng) {
  const auto got = core::apply(state, command, core::Context{1000, prng});
  if (got) return;
  fmt::print(stderr, "{}\n", got.error().message);
  std::exit(1);
}

std::size_t heap_bytes() {
  return mallinfo2().uordblks;
}

}  // namespace

int main() {
  constexpr int kInstances = 100;
  constexpr int kGpus = 8;
  constexpr int kSharesOfGpu = 16;
  constexpr int kTasks = kInstances * kGpus * kSharesOfGpu;
  core::State state = core::initial_state(1000);
  base::Prng prng(1);
  for (int i = 0; i < kInstances; ++i) {
    core::InstanceRegistration node;
    node.id = prng.next_hex_id();
    node.cluster = "default";
    node.cpu_units = 138 * 1024;
    node.memory_mib = 630 * 1024;
    node.attributes.emplace(core::kSharingAttribute, "");
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      node.gpus.push_back({"GPU-" + prng.next_hex_id(), "H100", 80000, 48});
    }
    must(state, core::ConnectInstance{node, 1}, prng);
  }
  core::ContainerDefinition container;
  container.name = "inference";
  container.image = "registry.example/inference:1";
  container.cpu_units = 256;
  container.memory_mib = 512;
  container.essential = true;
  container.gpu = core::SharedGpu{80000 / kSharesOfGpu, {}};
  core::TaskDefinition definition;
  definition.family = "inference";
  definition.containers = {container};
  must(state, core::RegisterTaskDefinition{definition}, prng);

  core::RunTask run;
  run.cluster = "default";
  run.definition.family = "inference";
  run.count = 10;
  const auto launch = [&](int tasks) {
    for (int i = 0; i < tasks; i += run.count) must(state, run, prng);
  };
  // What placement learns and caches once is not the tasks'.
  launch(1000);
  const std::size_t before = heap_bytes();
  launch(kTasks - 1000);
  const std::size_t after = heap_bytes();
  if (state.tasks.size() != kTasks) {
    fmt::print(stderr, "{} of {} tasks were placed\n", state.tasks.size(), kTasks);
    return 1;
  }
  fmt::print("memory: {} bytes a running task in the state ({} tasks on {} GPUs)\n",
             (after - before) / (kTasks - 1000), kTasks, kInstances * kGpus);
  return 0;
}
