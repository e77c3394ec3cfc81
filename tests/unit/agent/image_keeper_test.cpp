#include "agent/image_keeper.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "fakes/fake_image_store.h"
#include "fakes/settable_clock.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;

constexpr base::TimeMs kHour = 3'600'000;

class ImageKeeperTest : public testing::Test {
 protected:
  ImageKeeperTest() {
    std::string name = testing::TempDir() + "/image-keeper.XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~ImageKeeperTest() override { std::filesystem::remove_all(folder_); }

  ImageKeeper& keeper(PullBehavior behavior = PullBehavior::kDefault) {
    options_.behavior = behavior;
    keeper_ = std::make_unique<ImageKeeper>(options_, folder_, store_, clock_);
    return *keeper_;
  }
  std::size_t pulls() const { return store_.pulls().size(); }
  bool there(const std::string& image) { return store_.find(image).has_value(); }

  std::string folder_;
  fakes::FakeImageStore store_;
  fakes::SettableClock clock_{100 * kHour};
  ImageOptions options_;
  std::unique_ptr<ImageKeeper> keeper_;
};

// ECS agent, ECS_IMAGE_PULL_BEHAVIOR: what each does with an image that is absent, cached, cached
// and pulled before by cotenant, and with a registry that is away.
TEST_F(ImageKeeperTest, PullsByTheBehavior) {
  enum class Cached { kNo, kBuiltHere, kFromRegistry, kPulledByUs };
  struct Row {
    PullBehavior behavior;
    Cached cached;
    std::size_t want_pulls;
    bool want_ok_without_registry;
  };
  using enum Cached;
  const Row rows[] = {
      {PullBehavior::kDefault, kNo, 1, false},
      {PullBehavior::kDefault, kBuiltHere, 0, true},
      {PullBehavior::kDefault, kFromRegistry, 1, true},
      {PullBehavior::kDefault, kPulledByUs, 1, true},
      {PullBehavior::kAlways, kNo, 1, false},
      {PullBehavior::kAlways, kBuiltHere, 1, false},
      {PullBehavior::kAlways, kFromRegistry, 1, false},
      {PullBehavior::kOnce, kNo, 1, false},
      {PullBehavior::kOnce, kFromRegistry, 1, false},
      {PullBehavior::kOnce, kPulledByUs, 0, true},
      {PullBehavior::kPreferCached, kNo, 1, false},
      {PullBehavior::kPreferCached, kBuiltHere, 0, true},
      {PullBehavior::kPreferCached, kFromRegistry, 0, true},
  };
  int number = 0;
  for (const Row& row : rows) {
    for (const bool registry_there : {true, false}) {
      SCOPED_TRACE(std::string(to_string(row.behavior)) + " " +
                   std::to_string(static_cast<int>(row.cached)) +
                   (registry_there ? "" : " without registry"));
      const std::string image = "reg:5000/i" + std::to_string(++number);
      if (row.cached == kBuiltHere) store_.add(image, false);
      if (row.cached == kFromRegistry) store_.add(image, true);
      if (row.cached == kPulledByUs) {
        ASSERT_TRUE(keeper(PullBehavior::kAlways).ensure(image, {}, {}));
      }
      if (!registry_there && row.want_pulls > 0) {
        store_.fail_next_pull({ErrorCode::kIo, "connection refused"});
      }
      const std::size_t before = pulls();
      int told = 0;
      const base::Status got = keeper(row.behavior).ensure(image, [&] { ++told; }, {});
      EXPECT_EQ(pulls() - before, row.want_pulls);
      EXPECT_EQ(static_cast<std::size_t>(told), row.want_pulls);
      EXPECT_EQ(got.has_value(), registry_there || row.want_ok_without_registry);
    }
  }
}

TEST_F(ImageKeeperTest, ADigestIsNotAskedForTwice) {
  const std::string image = "reg:5000/x@sha256:00";
  EXPECT_TRUE(keeper().ensure(image, {}, {}));
  EXPECT_TRUE(keeper().ensure(image, {}, {}));
  EXPECT_EQ(pulls(), 1u);
}

TEST_F(ImageKeeperTest, AnEngineThatIsAwayIsNoReasonToUseWhatIsThere) {
  store_.add("reg:5000/x", true);
  store_.fail_next_pull({ErrorCode::kUnavailable, "engine away"});
  const base::Status got = keeper().ensure("reg:5000/x", {}, {});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
}

TEST_F(ImageKeeperTest, ShowsTheRegistryItsCredentials) {
  options_.registry_config = folder_ + "/config.json";
  ASSERT_TRUE(keeper().ensure("reg:5000/a", {}, {}));
  EXPECT_FALSE(store_.pulls().back().credentials);
  // A login counts from the next pull on.
  std::ofstream(options_.registry_config) << R"({"auths":{"reg:5000":{"auth":"bWU6cGFzcw=="}}})";
  ASSERT_TRUE(keeper_->ensure("reg:5000/a", {}, {}));
  ASSERT_TRUE(store_.pulls().back().credentials);
  EXPECT_EQ(store_.pulls().back().credentials->password, "pass");
  ASSERT_TRUE(keeper_->ensure("other:5000/a", {}, {}));
  EXPECT_FALSE(store_.pulls().back().credentials);
  // A damaged file costs the credentials, not the pull; a pull that fails for that says so.
  std::ofstream(options_.registry_config) << "{";
  ASSERT_TRUE(keeper_->ensure("reg:5000/b", {}, {}));
  store_.fail_next_pull({ErrorCode::kClient, "no basic auth credentials"});
  const base::Status got = keeper_->ensure("reg:5000/c", {}, {});
  ASSERT_FALSE(got);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, options_.registry_config, got.error().message);
}

TEST_F(ImageKeeperTest, RemovesOnlyItsOwnThatNobodyNeeds) {
  store_.add("reg:5000/users", true);
  store_.add("built", false);
  ImageKeeper& first = keeper();
  for (const char* image :
       {"reg:5000/users", "built", "reg:5000/a", "reg:5000/used", "reg:5000/wanted"}) {
    ASSERT_TRUE(first.ensure(image, {}, {})) << image;
  }
  store_.set_in_use({store_.find("reg:5000/used")->id});
  const std::set<std::string> wanted = {"reg:5000/wanted"};
  clock_.set(100 * kHour + kHour - 1);
  first.clean_up(wanted);
  EXPECT_TRUE(there("reg:5000/a")) << "too young";
  // What was pulled is known after a restart.
  clock_.set(101 * kHour);
  ImageKeeper& second = keeper();
  second.clean_up(wanted);
  EXPECT_EQ(store_.removed(), std::vector<std::string>{"reg:5000/a"});
  // A use counts from its end.
  store_.set_in_use({});
  clock_.set(101 * kHour + kHour - 1);
  second.clean_up({});
  EXPECT_TRUE(there("reg:5000/used"));
  clock_.set(103 * kHour);
  second.clean_up({});
  EXPECT_FALSE(there("reg:5000/used"));
  EXPECT_FALSE(there("reg:5000/wanted"));
  clock_.set(500 * kHour);
  second.clean_up({});
  EXPECT_TRUE(there("reg:5000/users"));
  EXPECT_TRUE(there("built"));
}

TEST_F(ImageKeeperTest, AnOlderVersionThatLostItsNameIsRemovedById) {
  ImageKeeper& own = keeper();
  ASSERT_TRUE(own.ensure("reg:5000/a", {}, {}));
  const std::string old_id = store_.find("reg:5000/a")->id;
  store_.release_version(2);
  ASSERT_TRUE(own.ensure("reg:5000/a", {}, {}));
  clock_.set(200 * kHour);
  own.clean_up({"reg:5000/a"});
  EXPECT_EQ(store_.removed(), std::vector<std::string>{old_id});
  EXPECT_TRUE(there("reg:5000/a"));
}

TEST_F(ImageKeeperTest, CleansUpAFewAtATimeAndNothingWhereForbidden) {
  options_.cleanup.images_per_cycle = 2;
  ImageKeeper& own = keeper();
  for (int i = 0; i < 5; ++i) {
    clock_.set(100 * kHour + i);
    ASSERT_TRUE(own.ensure("reg:5000/" + std::to_string(i), {}, {}));
  }
  clock_.set(200 * kHour);
  keeper(PullBehavior::kPreferCached).clean_up({});
  EXPECT_TRUE(store_.removed().empty()) << "ECS: prefer-cached turns the clean-up off";
  options_.cleanup.enabled = false;
  keeper().clean_up({});
  EXPECT_TRUE(store_.removed().empty());
  options_.cleanup.enabled = true;
  keeper().clean_up({});
  EXPECT_EQ(store_.removed(), (std::vector<std::string>{"reg:5000/0", "reg:5000/1"}));
  keeper_->clean_up({});
  EXPECT_EQ(store_.removed().size(), 4u);
}

TEST_F(ImageKeeperTest, AClockThatWasSetBackMakesNothingOld) {
  ASSERT_TRUE(keeper().ensure("reg:5000/a", {}, {}));
  clock_.set(1 * kHour);
  keeper_->clean_up({});
  clock_.set(2 * kHour - 1);
  keeper_->clean_up({});
  EXPECT_TRUE(store_.removed().empty());
  clock_.set(2 * kHour);
  keeper_->clean_up({});
  EXPECT_EQ(store_.removed().size(), 1u);
}

TEST_F(ImageKeeperTest, ADamagedRecordCostsTheCleanUpOnly) {
  std::ofstream(folder_ + "/" + ImageKeeper::kFileName) << "{\"format\":";
  ImageKeeper& own = keeper();
  EXPECT_TRUE(own.ensure("reg:5000/a", {}, {}));
  clock_.set(300 * kHour);
  own.clean_up({});
  EXPECT_EQ(store_.removed().size(), 1u);
}

}  // namespace
}  // namespace cotenant::agent
