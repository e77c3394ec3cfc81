// Clusters, task definitions and expiry.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/limits.h"
#include "world.h"

namespace cotenant::core {
namespace {

using test::container;
using test::definition;
using test::World;
namespace limits = base::limits;

TEST(CreateClusterTest, MakesOneAndRepeatsQuietly) {
  World world;
  const Outcome made = world.must(CreateCluster{"prod"});
  EXPECT_EQ(std::get<ClusterReply>(made.reply).name, "prod");
  EXPECT_EQ(made.effects.changed_records, (std::set<RecordRef>{{RecordKind::kCluster, "prod"}}));
  EXPECT_EQ(world.state.clusters.at("prod").created_at_ms, 1000);

  world.now_ms = 2000;
  const std::string before = test::dump(world.state);
  const Outcome again = world.must(CreateCluster{"prod"});
  EXPECT_EQ(std::get<ClusterReply>(again.reply).name, "prod");
  EXPECT_TRUE(again.effects.changed_records.empty());
  EXPECT_EQ(test::dump(world.state), before);
}

TEST(CreateClusterTest, TheDefaultClusterIsThereFromTheStart) {
  const State state = initial_state(77);
  ASSERT_EQ(state.clusters.size(), 1U);
  EXPECT_EQ(state.clusters.at(kDefaultCluster).created_at_ms, 77);
}

TEST(CreateClusterTest, TheNumberOfClustersIsBounded) {
  World world;
  for (std::size_t i = world.state.clusters.size(); i < limits::kClusters; ++i) {
    world.must(CreateCluster{"c" + std::to_string(i)});
  }
  const base::Error error = world.refused(CreateCluster{"one-too-many"});
  EXPECT_EQ(error.code, base::ErrorCode::kLimitExceeded);
  EXPECT_NE(error.message.find("clusterName"), std::string::npos);
  EXPECT_NE(error.message.find("1000"), std::string::npos);
  // One that exists is still answered.
  EXPECT_EQ(std::get<ClusterReply>(world.must(CreateCluster{"c5"}).reply).name, "c5");
}

TEST(RegisterTaskDefinitionTest, RevisionsCountUpPerFamily) {
  World world;
  const auto revision_of = [&](const std::string& family) {
    TaskDefinition asked = definition(family, {container("main")});
    asked.revision = 99;  // not the caller's to choose
    const Outcome outcome = world.must(RegisterTaskDefinition{asked});
    const auto reply = std::get<TaskDefinitionReply>(outcome.reply);
    EXPECT_EQ(reply.family, family);
    EXPECT_EQ(outcome.effects.changed_records,
              (std::set<RecordRef>{{RecordKind::kTaskDefinition, family, reply.revision}}));
    return reply.revision;
  };
  EXPECT_EQ(revision_of("web"), 1);
  EXPECT_EQ(revision_of("web"), 2);
  EXPECT_EQ(revision_of("llm"), 1);
  EXPECT_EQ(revision_of("web"), 3);
  EXPECT_EQ(latest_definition(world.state, "web")->revision, 3);
  EXPECT_EQ(find_definition(world.state, "web", 2)->revision, 2);
  EXPECT_EQ(find_definition(world.state, "web", 2)->registered_at_ms, 1000);
  EXPECT_EQ(find_definition(world.state, "web", 4), nullptr);
  EXPECT_EQ(find_definition(world.state, "nope", 1), nullptr);
  EXPECT_EQ(latest_definition(world.state, "nope"), nullptr);
}

TEST(RegisterTaskDefinitionTest, TheNumberOfRevisionsIsBounded) {
  World world;
  world.define("web", {container("main")});
  // As if all but the last had been deleted long ago.
  auto last = std::make_shared<TaskDefinition>(*latest_definition(world.state, "web"));
  last->revision = static_cast<std::int64_t>(limits::kRevisionsPerFamily);
  world.state.families.at("web").revisions.emplace(last->revision, last);
  const base::Error error =
      world.refused(RegisterTaskDefinition{definition("web", {container("main")})});
  EXPECT_EQ(error.code, base::ErrorCode::kLimitExceeded);
  EXPECT_NE(error.message.find("family: 'web'"), std::string::npos) << error.message;
}

TEST(ExpireTest, DropsStoppedTasksAndTokensPastTheirTimeAndNothingElse) {
  World world;
  world.connect("i1", {});
  world.define("web", {container("main")});
  RunTask with_token = World::run_command("web");
  with_token.client_token = "token";
  const std::string stopped = world.run(with_token).task_ids.at(0);
  const std::string alive = world.run_one("web");
  world.now_ms = 5000;
  world.observe(stopped, {test::exited("main", 0)});

  const auto expire_at = [&](base::TimeMs now_ms) {
    world.now_ms = now_ms;
    return world.must(Expire{}).effects;
  };
  EXPECT_TRUE(expire_at(5000 + limits::kStoppedTaskRetentionMs - 1).changed_records.empty());
  EXPECT_EQ(world.state.tasks.count(stopped), 1U);

  const Effects first = expire_at(5000 + limits::kStoppedTaskRetentionMs);
  EXPECT_EQ(first.changed_records, (std::set<RecordRef>{{RecordKind::kTask, stopped}}));
  EXPECT_TRUE(first.notify_tasks.empty());
  EXPECT_EQ(world.state.tasks.count(stopped), 0U);

  EXPECT_TRUE(expire_at(1000 + limits::kClientTokenRetentionMs - 1).changed_records.empty());
  EXPECT_EQ(world.state.client_tokens.size(), 1U);
  EXPECT_EQ(expire_at(1000 + limits::kClientTokenRetentionMs).changed_records,
            (std::set<RecordRef>{{RecordKind::kClientToken, "default/token"}}));
  EXPECT_TRUE(world.state.client_tokens.empty());

  // A task that runs never expires.
  expire_at(1000LL * 365 * 24 * 3600 * 1000);
  EXPECT_EQ(world.state.tasks.count(alive), 1U);
}

}  // namespace
}  // namespace cotenant::core
