#include "agent/agent_state.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace cotenant::agent {
namespace {

using base::ErrorCode;

class AgentStateTest : public testing::Test {
 protected:
  AgentStateTest() {
    std::string pattern = testing::TempDir() + "agent-state-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    folder_ = root_ + "/a/data";
  }
  ~AgentStateTest() override { std::filesystem::remove_all(root_); }

  base::Result<AgentState> open() { return AgentState::open(folder_, prng_); }
  void write(const std::string& text) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/agent.json") << text;
  }

  base::Prng prng_{1};
  std::string root_;
  std::string folder_;
};

TEST_F(AgentStateTest, KeepsIdentityAndEpoch) {
  std::string id;
  {
    auto state = open();
    ASSERT_TRUE(state) << state.error().message;
    id = state->instance_id();
    EXPECT_EQ(id.size(), 32u);
    EXPECT_EQ(state->epoch(), 0);
    EXPECT_EQ(state->next_epoch().value_or(-1), 1);
    EXPECT_EQ(state->next_epoch().value_or(-1), 2);
    struct stat info {};
    ASSERT_EQ(::stat(folder_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/agent.json.new"));
  }
  auto again = open();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->instance_id(), id);
  EXPECT_GT(again->next_epoch().value_or(-1), 2);
}

TEST_F(AgentStateTest, EpochsGrowThroughEveryRestart) {
  std::int64_t last = 0;
  for (int start = 0; start < 3; ++start) {
    auto state = open();
    ASSERT_TRUE(state) << state.error().message;
    for (std::int64_t i = 0; i < AgentState::kEpochsReserved + 2; ++i) {
      const std::int64_t epoch = state->next_epoch().value_or(-1);
      ASSERT_GT(epoch, last);
      last = epoch;
    }
  }
}

TEST_F(AgentStateTest, ConnectingAgainNeedsNoWrite) {
  auto state = open();
  ASSERT_TRUE(state);
  ASSERT_TRUE(state->next_epoch());
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(state->next_epoch().value_or(-1), 2);
}

TEST_F(AgentStateTest, AHalfWrittenReplacementIsIgnored) {
  const std::string id = open()->instance_id();
  std::ofstream(folder_ + "/agent.json.new") << "{\"form";
  auto state = open();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->instance_id(), id);
  EXPECT_TRUE(state->next_epoch());
}

TEST_F(AgentStateTest, TwoAgentsCannotHaveOneFolder) {
  auto first = open();
  ASSERT_TRUE(first);
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message.find("another agent"), std::string::npos);
  // The lock goes with the value that is moved.
  std::optional<AgentState> moved(std::move(*first));
  EXPECT_FALSE(open());
  moved.reset();
  EXPECT_TRUE(open());
}

TEST_F(AgentStateTest, ADamagedFileIsNamedWithTheRemedy) {
  struct Row {
    const char* text;
    const char* want;
  };
  const std::string id(32, 'a');
  const Row rows[] = {
      {"", "cannot be read or is empty"},
      {"{", "is damaged"},
      {"[]", "must hold an object"},
      {R"({"format":2})", "format: this version of cotenant reads only 1"},
      {R"({"format":1,"epoch":1})", "instanceId: must be 32"},
      {R"({"format":1,"instanceId":"ABC","epoch":1})", "instanceId: must be 32"},
      {R"({"format":1,"instanceId":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})", "epoch: must be"},
      {R"({"format":1,"instanceId":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","epoch":-1})",
       "epoch: must be"},
  };
  for (const Row& row : rows) {
    write(row.text);
    const auto state = open();
    ASSERT_FALSE(state) << row.text;
    EXPECT_EQ(state.error().code, ErrorCode::kIo);
    for (const std::string& part :
         {folder_ + "/agent.json", std::string(row.want), std::string("remove it to join")}) {
      EXPECT_NE(state.error().message.find(part), std::string::npos) << state.error().message;
    }
  }
}

TEST_F(AgentStateTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(root_ + "/file") << "x";
  const auto state = AgentState::open(root_ + "/file/data", prng_);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, ErrorCode::kIo);
  EXPECT_NE(state.error().message.find(root_ + "/file/data"), std::string::npos);
}

TEST_F(AgentStateTest, AnEpochThatCannotBeStoredIsNotUsed) {
  auto state = open();
  ASSERT_TRUE(state);
  std::filesystem::remove_all(folder_);
  EXPECT_FALSE(state->next_epoch());
  EXPECT_EQ(state->epoch(), 0);
}

TEST(BootIdTest, IsStable) {
  const auto first = read_boot_id();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size(), 36u);
  EXPECT_EQ(*read_boot_id(), *first);
}

}  // namespace
}  // namespace cotenant::agent
