// The store on a disk that loses what was not synced: whatever the moment, what was acknowledged is
// there, and a commit is there whole or not at all.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "adapters/sqlite_store.h"
#include "base/prng.h"
#include "temp_folder.h"
#include "unit/sanitized.h"
#include "unsynced_vfs.h"

namespace cotenant::adapters {
namespace {

using Contents = std::map<std::string, std::string>;
using Loss = UnsyncedVfs::Loss;

// A store's life: commits of every size, a restart in the middle. What was acknowledged when.
class Life {
 public:
  explicit Life(const std::string& folder) : path_(folder + "/cotenant.db"), vfs_(folder) {
    states_.push_back({});
    open();
    for (int commit = 1; commit <= 60; ++commit) {
      if (commit == 35) open();
      store_one();
    }
    store_.reset();
    acknowledged_.emplace_back(vfs_.moments(), states_.size() - 1);
  }

  const UnsyncedVfs& vfs() const { return vfs_; }
  const Contents& state(std::size_t revision) const { return states_.at(revision); }
  std::size_t revisions() const { return states_.size(); }

  // The newest revision that was answered before the moment; -1: not even the opening.
  std::int64_t acknowledged_at(std::size_t moment) const {
    std::int64_t newest = -1;
    for (const auto& [at, revision] : acknowledged_) {
      if (at <= moment) newest = static_cast<std::int64_t>(revision);
    }
    return newest;
  }

 private:
  void open() {
    store_.reset();
    auto opened = SqliteStore::open(path_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    acknowledged_.emplace_back(vfs_.moments(), states_.size() - 1);
  }

  void store_one() {
    Contents next = states_.back();
    std::map<std::string, std::optional<std::string>> changes;
    const auto writes = 1 + prng_.next() % 6;
    for (std::uint64_t i = 0; i < writes; ++i) {
      const std::string key = "task/" + std::to_string(prng_.next() % 20);
      if (prng_.next() % 5 == 0) {
        changes[key] = std::nullopt;
        next.erase(key);
      } else {
        // Up to some pages of 4 KiB.
        const std::size_t bytes = prng_.next() % (prng_.next() % 8 == 0 ? 20'000 : 300);
        changes[key] = next[key] = std::string(bytes, static_cast<char>('a' + prng_.next() % 26));
      }
    }
    std::vector<ports::StoreWrite> batch;
    for (const auto& [key, value] : changes) batch.push_back({key, value});
    const auto revision = store_->commit(batch, static_cast<std::int64_t>(states_.size()) - 1);
    ASSERT_TRUE(revision) << revision.error().message;
    states_.push_back(std::move(next));
    acknowledged_.emplace_back(vfs_.moments(), states_.size() - 1);
  }

  const std::string path_;
  UnsyncedVfs vfs_;
  base::Prng prng_{7};
  std::unique_ptr<SqliteStore> store_;
  std::vector<Contents> states_;                                   // by revision
  std::vector<std::pair<std::size_t, std::size_t>> acknowledged_;  // moment, revision
};

void write_files(const std::string& from, const std::string& to,
                 const std::map<std::string, std::string>& files) {
  std::filesystem::remove_all(to);
  std::filesystem::create_directories(to);
  for (const auto& [path, content] : files) {
    std::ofstream(to + path.substr(from.size()), std::ios::binary) << content;
  }
}

// COTENANT_TEST_POWER_FAILURES=all: every moment with every loss; else a part of them.
std::size_t stride() {
  const char* asked = std::getenv("COTENANT_TEST_POWER_FAILURES");
  if (asked != nullptr && std::string_view(asked) == "all") return 1;
  return tests::kSanitized ? 37 : 7;
}

TEST(SqlitePowerFailureTest, NoAcknowledgedCommitIsLostAndNoneIsHalf) {
  const TempFolder folder;
  const std::string alive = folder.path() + "/alive";
  const std::string found = folder.path() + "/found";
  std::filesystem::create_directory(alive);
  const Life life(alive);
  ASSERT_EQ(life.revisions(), 61U);
  ASSERT_GT(life.vfs().moments(), 300U) << "the store's files are watched";

  base::Prng prng(11);
  std::size_t failures = 0;
  std::size_t in_flight_kept = 0;
  std::size_t in_flight_lost = 0;
  for (std::size_t moment = 0; moment <= life.vfs().moments(); moment += stride()) {
    for (const Loss loss : {Loss::kAllUnsynced, Loss::kNothing, Loss::kTorn}) {
      SCOPED_TRACE(testing::Message()
                   << "moment " << moment << ", loss " << static_cast<int>(loss));
      write_files(alive, found, life.vfs().after_power_failure(moment, loss, prng));
      const std::int64_t acknowledged = life.acknowledged_at(moment);
      ++failures;
      auto store = SqliteStore::open(found + "/cotenant.db");
      // Before the first opening was over, there is nothing to lose.
      if (!store && acknowledged < 0) continue;
      ASSERT_TRUE(store) << store.error().message;
      const auto snapshot = (*store)->load();
      ASSERT_TRUE(snapshot) << snapshot.error().message;
      ASSERT_GE(snapshot->revision, acknowledged) << "an acknowledged commit is lost";
      ASSERT_LE(snapshot->revision, std::max<std::int64_t>(acknowledged, 0) + 1)
          << "a commit that was never asked for";
      ASSERT_EQ(snapshot->records, life.state(static_cast<std::size_t>(snapshot->revision)));
      (snapshot->revision > acknowledged ? in_flight_kept : in_flight_lost) += 1;
      // And it goes on from there.
      ASSERT_TRUE((*store)->commit({{"after", "it"}}, snapshot->revision));
    }
  }
  EXPECT_GT(failures, 50U);
  EXPECT_GT(in_flight_kept, 0U);
  EXPECT_GT(in_flight_lost, 0U);
}

TEST(SqlitePowerFailureTest, AFullDiskRefusesAndNothingIsLost) {
  const TempFolder folder;
  UnsyncedVfs vfs(folder.path());
  const std::string path = folder.path() + "/cotenant.db";
  auto store = SqliteStore::open(path);
  ASSERT_TRUE(store) << store.error().message;
  Contents want;
  std::int64_t revision = 0;
  int refused = 0;
  // Full at each of the writes that a commit makes, and again, until one is not met any more.
  for (int writes = 0; writes < 40; ++writes) {
    SCOPED_TRACE(writes);
    const std::string key = "task/" + std::to_string(writes % 7);
    const std::string value(static_cast<std::size_t>(writes) * 700, 'x');
    vfs.fill_after(writes % 8);
    const auto committed = (*store)->commit({{key, value}}, revision);
    vfs.fill_after(-1);
    if (committed) {
      revision = *committed;
      want[key] = value;
    } else {
      ++refused;
      ASSERT_EQ(committed.error().code, base::ErrorCode::kUnavailable) << committed.error().message;
    }
    const auto snapshot = (*store)->load();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    EXPECT_EQ(snapshot->revision, revision);
    EXPECT_EQ(snapshot->records, want);
    // The probe that finds out that there is room again.
    const auto probed = (*store)->commit({{"probe", std::to_string(writes)}}, revision);
    ASSERT_TRUE(probed) << probed.error().message;
    revision = *probed;
    want["probe"] = std::to_string(writes);
  }
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace cotenant::adapters
