#include "core/placement/explain.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/placement/value_policy.h"
#include "world.h"

namespace cotenant::core::test {
namespace {

// Where a copy went: the instance, the GPUs' UUIDs, or the failure.
using Where = std::vector<std::string>;

std::vector<Where> told(const Explanation& explanation) {
  std::vector<Where> all;
  for (const ExplainedDecision& decision : explanation.decisions) {
    if (decision.refusal) {
      const PlacementRefusal& refusal = *decision.refusal;
      all.push_back({"refused", refusal.instance_id, refusal.reason, refusal.detail});
      break;
    }
    Where where = {decision.chosen->instance_id};
    for (const ExplainedGpu& gpu : decision.chosen->gpus) where.push_back(gpu.uuid);
    all.push_back(where);
  }
  return all;
}

std::vector<Where> done(const State& state, const RunTaskReply& reply) {
  std::vector<Where> all;
  for (const std::string& id : reply.task_ids) {
    const Task& task = state.tasks.at(id);
    std::set<std::string> uuids;
    for (const TaskContainer& part : task.containers) {
      uuids.insert(part.gpu_uuids.begin(), part.gpu_uuids.end());
    }
    Where where = {task.instance_id};
    where.insert(where.end(), uuids.begin(), uuids.end());
    all.push_back(where);
  }
  if (!reply.failures.empty()) {
    const TaskFailure& failure = reply.failures.front();
    all.push_back({"refused", failure.instance_id, failure.reason, failure.detail});
  }
  return all;
}

// A State as text, with what its policies' fleets hold.
std::string dump_with_fleets(const State& state) {
  std::string text = dump(state);
  for (const auto& [cluster, placement] : state.placements) {
    const Fleet& fleet = placement.fleet;
    text += cluster + " " + std::to_string(fleet.total_gpus());
    for (NodeSlot slot = 0; slot < fleet.size(); ++slot) {
      const FleetNode& node = fleet.node(slot);
      text += " " + std::to_string(node.cpu_free) + "/" + std::to_string(node.memory_free_mib) +
              "/" + std::to_string(node.usable_mib) + "/" + std::to_string(node.whole_gpus);
      for (std::size_t gpu = 0; gpu < node.gpu_count; ++gpu) {
        text += " " + std::to_string(fleet.gpu(slot, gpu).left_mib) + "x" +
                std::to_string(fleet.gpu(slot, gpu).containers);
      }
    }
    const auto workload = state.workloads.find(cluster);
    if (workload == state.workloads.end()) continue;
    const Workload::Counters& counters = workload->second.counters();
    text += " learned " + std::to_string(counters.seen) + " " + std::to_string(counters.trainings) +
            " " + std::to_string(counters.window_arrived) + " " +
            std::to_string(counters.window_placed);
    for (const Workload::Shape& shape : workload->second.shapes()) {
      text += " " + std::to_string(shape.count) + ":" + std::to_string(shape.built_count);
    }
  }
  return text;
}

Explanation must_explain(World& world, const ExplainQuestion& question) {
  const std::string before = dump_with_fleets(world.state);
  const base::Prng prng = world.prng;
  auto got = explain(world.state, question, Context{world.now_ms, world.prng});
  EXPECT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(dump_with_fleets(world.state), before);
  base::Prng now = world.prng;
  base::Prng then = prng;
  EXPECT_EQ(now.next(), then.next()) << "the generator has moved";
  return got ? *std::move(got) : Explanation{};
}

ExplainQuestion ask(const RunTask& run) {
  ExplainQuestion question;
  question.run = run;
  return question;
}

PlacementStrategy by(StrategyType type, std::string field = {}) {
  return {type, std::move(field)};
}

// Two worlds with one history; in the first one, every call of RunTask is explained before it is made.
class ExplainTwins {
 public:
  explicit ExplainTwins(std::uint64_t seed) : dice_(seed) {}

  void command(const Command& command) {
    asked_.must(command);
    other_.must(command);
  }
  void connect(const InstanceRegistration& registration) {
    command(ConnectInstance{registration, 1});
  }
  // Returns the number of copies that were placed.
  std::size_t run(const RunTask& run) {
    ExplainQuestion question = ask(run);
    question.instances = roll(4);
    const auto before = told(must_explain(asked_, question));
    const RunTaskReply reply = asked_.run(run);
    EXPECT_EQ(before, done(asked_.state, reply));
    const RunTaskReply other = other_.run(run);
    EXPECT_EQ(reply.task_ids, other.task_ids);
    EXPECT_EQ(done(other_.state, other), before);
    tasks_.insert(tasks_.end(), reply.task_ids.begin(), reply.task_ids.end());
    return reply.task_ids.size();
  }
  void end_one() {
    if (tasks_.empty()) return;
    const std::size_t at = roll(tasks_.size());
    for (World* world : {&asked_, &other_}) {
      std::vector<ContainerObservation> gone;
      for (const TaskContainer& part : world->task(tasks_[at]).containers) {
        gone.push_back(exited(part.name, 0));
      }
      world->observe(tasks_[at], gone);
    }
    tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void explain_one() {
    if (tasks_.empty()) return;
    ExplainQuestion question = ask(World::run_command(""));
    question.task_id = tasks_[roll(tasks_.size())];
    const Explanation got = must_explain(asked_, question);
    ASSERT_TRUE(got.task.has_value());
    EXPECT_EQ(got.task->task.id, question.task_id);
    EXPECT_EQ(got.decisions.size(), 1U);
    // Without it there is room where it is, unless constraints say otherwise.
    EXPECT_TRUE(got.decisions[0].chosen.has_value() || !got.task->place);
  }
  std::size_t roll(std::size_t sides) { return dice_.next() % sides; }

 private:
  World asked_;
  World other_;
  base::Prng dice_;
  std::vector<std::string> tasks_;
};

std::vector<TaskDefinition> explained_definitions() {
  auto ports = definition("ports", {container("main", SharedGpu{9000, {}})});
  ports.containers[0].ports.push_back({});
  ports.containers[0].ports.back().container_port = 80;
  ports.containers[0].ports.back().host_port = 8080;
  auto zoned = definition("zoned", {container("main", SharedGpu{20000, {}})});
  zoned.member_of.push_back(Query::parse("attribute:zone in [a, b]").value());
  auto lonely = definition("lonely", {container("main")});
  lonely.member_of.push_back(Query::parse("not (task:group == family:lonely)").value());
  return {
      definition("half", {container("main", SharedGpu{kGpuMib / 2, {}})}),
      definition("pair", {container("a", SharedGpu{7000, {}}), container("b", SharedGpu{9000, 9}),
                          container("side", NoGpu{}, false)}),
      definition("whole", {container("main", WholeGpus{1, false})}),
      definition("two", {container("main", WholeGpus{2, false})}),
      definition("all", {container("main", WholeGpus{0, true})}),
      definition("cpu", {container("main")}),
      definition("huge", {container("main", SharedGpu{kGpuMib + 1, {}})}),
      ports,
      zoned,
      lonely};
}

TEST(Explain, IsTheDecisionThatRunTaskThenMakes) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    ExplainTwins twins(seed);
    const auto definitions = explained_definitions();
    for (const TaskDefinition& each : definitions) twins.command(RegisterTaskDefinition{each});
    const std::size_t nodes = 3 + twins.roll(12);
    for (std::size_t i = 0; i < nodes; ++i) {
      std::vector<GpuSetup> gpus(twins.roll(5), idle_gpu(twins.roll(3) == 0 ? 24000 : kGpuMib));
      InstanceRegistration made = registration("i" + std::to_string(i), gpus);
      made.attributes["zone"] = std::string(1, static_cast<char>('a' + twins.roll(3)));
      made.cpu_units = static_cast<std::int64_t>(1 + twins.roll(8)) * 1024;
      twins.connect(made);
    }
    for (int step = 0; step < 120; ++step) {
      if (twins.roll(20) == 0) {
        const auto& names = placement_policy_names();
        twins.command(UpdateClusterSettings{
            "default", {{kPlacementPolicySetting, std::string(names[twins.roll(names.size())])}}});
      }
      RunTask run = World::run_command(definitions[twins.roll(definitions.size())].family,
                                       static_cast<int>(1 + twins.roll(10)));
      switch (twins.roll(6)) {
        case 0:
          run.placement.strategies = {by(StrategyType::kSpread, "attribute:zone"),
                                      by(StrategyType::kBinpack, "gpuMemory")};
          break;
        case 1:
          run.placement.strategies = {by(StrategyType::kSpread, "instanceId"),
                                      by(StrategyType::kRandom)};
          break;
        case 2: {
          const auto& names = placement_policy_names();
          run.placement.strategies = {
              by(StrategyType::kBinpack,
                 std::string(kPolicyField) + std::string(names[twins.roll(names.size())]))};
          break;
        }
        default:
          break;
      }
      run.placement.distinct_instance = twins.roll(8) == 0;
      twins.run(run);
      if (twins.roll(4) == 0) twins.explain_one();
      for (std::size_t ends = twins.roll(4); ends > 0; --ends) twins.end_one();
    }
  }
}

// Where a cluster is so large that scores are filled in over several decisions.
TEST(Explain, SixteenHalvesOnEightGpusAreTwoOnEach) {
  for (const std::string_view policy : placement_policy_names()) {
    SCOPED_TRACE(policy);
    World world;
    world.define("half", {container("main", SharedGpu{kGpuMib / 2, {}})});
    world.connect("i1", std::vector<GpuSetup>(8, idle_gpu()));
    world.must(UpdateClusterSettings{"default", {{kPlacementPolicySetting, std::string(policy)}}});

    const Explanation before = must_explain(world, ask(World::run_command("half", 17)));
    ASSERT_EQ(before.decisions.size(), 17U);
    std::map<std::string, int> per_gpu;
    for (std::size_t i = 0; i < 16; ++i) ++per_gpu[before.decisions[i].chosen->gpus.at(0).uuid];
    EXPECT_EQ(per_gpu.size(), 8U);
    for (const auto& [uuid, halves] : per_gpu) EXPECT_EQ(halves, 2) << uuid;
    EXPECT_EQ(before.decisions[16].refusal->reason, "RESOURCE:GPU");
    EXPECT_FALSE(before.decisions[16].refusal->infeasible);

    // The live path, which takes ten at a time.
    const RunTaskReply first = world.run(World::run_command("half", 10));
    const RunTaskReply second = world.run(World::run_command("half", 7));
    EXPECT_EQ(first.task_ids.size(), 10U);
    EXPECT_EQ(second.task_ids.size(), 6U);
    EXPECT_EQ(second.failures.size(), 1U);
    for (std::size_t gpu = 0; gpu < 8; ++gpu) {
      EXPECT_EQ(world.node("i1").gpus.container_count(gpu), 2);
      EXPECT_EQ(world.node("i1").gpus.remaining_mib(gpu), 0);
    }
  }
}

TEST(Explain, NamesTheTermsOfTheChoiceAndOfTheRunnerUp) {
  const std::map<std::string, std::vector<std::string>> want = {
      {"balanced", {"tight", "unusable", "cpu", "scarcity"}},
      {"tight", {"memory left on the GPU", "idle"}},
      {"bestfit", {"CPU left", "GPU left"}},
      {"fgd", {"unusable before", "unusable after"}},
      {"tc", {"waste", "cpu", "block"}},
      {"tcb", {"waste", "cpu", "block"}},
      {"wv", {"waste", "cpu", "block"}}};
  for (const std::string_view policy : placement_policy_names()) {
    SCOPED_TRACE(policy);
    World world;
    world.define("quarter", {container("main", SharedGpu{kGpuMib / 4, {}})});
    world.connect("i1", {idle_gpu(), idle_gpu()});
    world.connect("i2", {idle_gpu()});
    world.must(UpdateClusterSettings{"default", {{kPlacementPolicySetting, std::string(policy)}}});
    world.run_one("quarter");
    const Explanation got = must_explain(world, ask(World::run_command("quarter")));
    EXPECT_EQ(got.policy, policy);
    const ExplainedDecision& decision = got.decisions.at(0);
    ASSERT_TRUE(decision.chosen && decision.others.size() == 1);
    for (const ExplainedPlace* place : {&*decision.chosen, &decision.others[0]}) {
      std::vector<std::string> names;
      for (const PolicyTerm& term : place->terms) {
        names.emplace_back(term.name);
        EXPECT_FALSE(term.unit.empty()) << term.name;
      }
      EXPECT_EQ(names, want.at(std::string(policy)));
      EXPECT_EQ(place->cost.has_value(), policy != "tight");
    }
    if (policy == "tight") continue;
    EXPECT_LE(*decision.chosen->cost, *decision.others[0].cost);
    const std::int64_t band = policy == "balanced"                                  ? 20
                              : policy == "tc" || policy == "tcb" || policy == "wv" ? 15
                                                                                    : 0;
    if (band == 0) continue;
    for (const ExplainedPlace* place : {&*decision.chosen, &decision.others[0]}) {
      const std::int64_t sum = std::accumulate(
          place->terms.begin(), place->terms.end(), std::int64_t{0},
          [](std::int64_t so_far, const PolicyTerm& term) { return so_far + term.value; });
      EXPECT_EQ(*place->cost, ceil_div(sum, band));
    }
  }
}

TEST(Explain, CountsWhyInstancesDoNotFit) {
  World world;
  world.define("big", {container("main", SharedGpu{60000, {}})});
  world.connect("i1", {idle_gpu()});
  world.connect("i2", {idle_gpu(24000)});
  world.connect("i3", {});
  world.connect("i4", {idle_gpu()});
  world.connect("i5", {idle_gpu()});
  world.must(DisconnectInstance{"i4", 1});
  world.must(UpdateInstancesState{"default", {"i5"}, InstanceStatus::kDraining});
  world.run_one("big");

  ExplainQuestion question = ask(World::run_command("big"));
  question.instances = 2;
  question.run.placement.member_of = {Query::parse("attribute:zone !exists").value()};
  const Explanation got = must_explain(world, question);
  const ExplainedDecision& decision = got.decisions.at(0);
  ASSERT_TRUE(decision.refusal && decision.feasibility);
  const Feasibility& found = *decision.feasibility;
  EXPECT_EQ(found.instances, 4);
  EXPECT_EQ(found.fits, 0);
  EXPECT_EQ(found.no_fit, 2);      // i1 is full, i4's agent is away
  EXPECT_EQ(found.infeasible, 2);  // i2's GPU is too small, i3 has none
  EXPECT_EQ(found.draining, 1);
  ASSERT_EQ(found.reasons.size(), 2U);
  EXPECT_EQ(found.reasons[0].reason, "AGENT");
  EXPECT_EQ(found.reasons[0].no_fit, 1);
  EXPECT_EQ(found.reasons[1].reason, "RESOURCE:GPU");
  EXPECT_EQ(found.reasons[1].no_fit, 1);
  EXPECT_EQ(found.reasons[1].infeasible, 2);
  ASSERT_EQ(found.refusing.size(), 2U) << "no more than were asked for";
  EXPECT_EQ(found.refusing[0].instance_id, "i1");
  EXPECT_EQ(found.refusing[0].verdict, FitVerdict::kNoFit);
  EXPECT_NE(found.refusing[0].obstacle.find("40000 MiB missing"), std::string::npos);
  EXPECT_EQ(found.refusing[1].verdict, FitVerdict::kInfeasible);

  question.run.placement.member_of = {Query::parse("attribute:zone exists").value()};
  const Explanation constrained = must_explain(world, question);
  const auto& reasons = constrained.decisions.at(0).feasibility->reasons;
  ASSERT_EQ(reasons.size(), 2U);
  EXPECT_EQ(reasons[1].constraint, "memberOf attribute:zone exists");
  EXPECT_EQ(reasons[1].infeasible, 3);
}

TEST(Explain, ADefinitionThatIsNotRegisteredStaysSo) {
  World world;
  world.connect("i1", {idle_gpu()});
  ExplainQuestion question = ask(World::run_command("", 2));
  question.definition = definition("fresh", {container("main", SharedGpu{1000, {}})});
  const Explanation got = must_explain(world, question);
  EXPECT_FALSE(got.registered);
  EXPECT_EQ(got.definition->family, "fresh");
  EXPECT_EQ(got.decisions.size(), 2U);
  EXPECT_EQ(world.state.families.count("fresh"), 0U);
  // Beside revisions that are there.
  world.define("fresh", {container("main")});
  must_explain(world, question);
  EXPECT_EQ(world.state.families.at("fresh").revisions.size(), 1U);
}

TEST(Explain, ATaskThatIsThereIsJudgedAsIfItWereNot) {
  World world;
  world.define("half", {container("main", SharedGpu{kGpuMib / 2, {}})});
  world.connect("i1", {idle_gpu()});
  const std::string id = world.run_one("half");
  world.run_one("half");
  world.connect("i2", {idle_gpu()});
  ExplainQuestion question = ask(World::run_command(""));
  question.task_id = id;
  const Explanation got = must_explain(world, question);
  ASSERT_TRUE(got.task && got.task->place);
  EXPECT_EQ(got.task->place->instance_id, "i1");
  EXPECT_EQ(got.task->place->gpus.at(0).left_mib, kGpuMib / 2) << "without it";
  EXPECT_EQ(got.decisions.at(0).chosen->instance_id, "i1");

  // Its GPU has faulted: it would not be put there today.
  InstanceRegistration again = world.node("i1").registration;
  again.gpus[0].unavailable = "it has fallen off the bus";
  world.must(ConnectInstance{again, 2, {id}});
  const Explanation faulted = must_explain(world, question);
  EXPECT_FALSE(faulted.task->place.has_value());
  EXPECT_NE(faulted.task->misfit.find("it has fallen off the bus"), std::string::npos)
      << faulted.task->misfit;
  EXPECT_EQ(faulted.decisions.at(0).chosen->instance_id, "i2");

  world.observe(id, {exited("main", 0)});
  EXPECT_FALSE(must_explain(world, question).task->place.has_value());
}

TEST(Explain, RefusesWhatRunTaskRefuses) {
  World world;
  const auto error = [&](const ExplainQuestion& question) {
    const std::string before = dump_with_fleets(world.state);
    const auto got = explain(world.state, question, Context{world.now_ms, world.prng});
    EXPECT_FALSE(got.has_value());
    EXPECT_EQ(dump_with_fleets(world.state), before);
    return got ? std::string() : got.error().message;
  };
  EXPECT_EQ(error(ask(World::run_command("nope"))),
            world.refused(World::run_command("nope")).message);
  world.define("half", {container("main", SharedGpu{kGpuMib / 2, {}})});
  EXPECT_EQ(error(ask(World::run_command("half"))),
            world.refused(World::run_command("half")).message);
  RunTask elsewhere = World::run_command("half");
  elsewhere.cluster = "nope";
  EXPECT_EQ(error(ask(elsewhere)), world.refused(elsewhere).message);
  ExplainQuestion question = ask(World::run_command(""));
  question.task_id = "nope";
  EXPECT_EQ(error(question), "task: 'nope' was not found in cluster 'default'");
  world.connect("i1", {idle_gpu()});
  world.connect("i2", {idle_gpu()});
  question = ask(World::run_command("half", 4));
  question.looks = 7;
  EXPECT_EQ(error(question),
            "count: 4 copies on 2 instances are too many for one explanation; at most 3");
  question.looks = 8;
  EXPECT_EQ(must_explain(world, question).decisions.size(), 4U);
}

TEST(Explain, TellsWhatEachStrategyHasKept) {
  World world;
  world.define("half", {container("main", SharedGpu{kGpuMib / 2, {}})});
  world.connect("i1", {idle_gpu()});
  world.connect("i2", {idle_gpu()});
  world.connect("i3", {idle_gpu(), idle_gpu()});
  world.run_one("half");
  RunTask run = World::run_command("half");
  run.placement.strategies = {by(StrategyType::kSpread, "instanceId"),
                              by(StrategyType::kBinpack, "gpuMemory"), by(StrategyType::kRandom)};
  const Explanation got = must_explain(world, ask(run));
  EXPECT_TRUE(got.policy.empty());
  const ExplainedDecision& decision = got.decisions.at(0);
  ASSERT_EQ(decision.stages.size(), 3U);
  EXPECT_EQ(decision.stages[0].before, 3U);
  EXPECT_EQ(decision.stages[0].after, 2U);
  EXPECT_EQ(decision.stages[1].after, 2U);
  EXPECT_EQ(decision.stages[2].after, 1U);
  ASSERT_EQ(decision.chosen->stage_ranks.size(), 3U);
  EXPECT_EQ(decision.chosen->stage_ranks[0], 0);
  EXPECT_EQ(decision.chosen->stage_ranks[2], std::nullopt);
  EXPECT_EQ(decision.others.size(), 2U);
  EXPECT_EQ(decision.others.back().stage_ranks[0], 1) << "the one that has a task comes last";
}

}  // namespace
}  // namespace cotenant::core::test
