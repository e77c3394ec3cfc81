#include "adapters/sqlite_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "temp_folder.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using Records = std::map<std::string, std::string>;

std::unique_ptr<SqliteStore> must_open(const std::string& path,
                                       const SqliteStoreOptions& options = {}) {
  auto store = SqliteStore::open(path, options);
  if (!store) {
    ADD_FAILURE() << store.error().message;
    return nullptr;
  }
  return std::move(*store);
}

int mode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : -1;
}

void run_sql(const std::string& path, const char* sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  sqlite3_close(database);
}

// A mounted tmpfs for one test; not mounted where we may not.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    std::filesystem::create_directory(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  void make_read_only() {
    ASSERT_EQ(::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=256k"), 0);
  }
  void make_writable() {
    ASSERT_EQ(::mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, "size=256k"), 0);
  }

 private:
  std::string path_;
  bool mounted_ = false;
};

class SqliteStoreTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/data/cotenant.db"; }

  TempFolder folder_;
};

TEST_F(SqliteStoreTest, NewStoreIsEmptyAtRevisionZero) {
  const auto store = must_open(path());
  const auto snapshot = store->load();
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->revision, 0);
  EXPECT_TRUE(snapshot->records.empty());
}

TEST_F(SqliteStoreTest, MakesPrivateFolderAndFiles) {
  const auto store = must_open(path());
  ASSERT_TRUE(store->commit({{"a", "1"}}, 0).has_value());
  EXPECT_EQ(mode_of(folder_.path() + "/data"), 0700);
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    EXPECT_EQ(mode_of(path() + suffix), 0600) << suffix;
  }
}

TEST_F(SqliteStoreTest, TakesWidePermissionsOfTheFileAway) {
  must_open(path()).reset();
  ASSERT_EQ(::chmod(path().c_str(), 0644), 0);
  const auto store = must_open(path());
  EXPECT_EQ(mode_of(path()), 0600);
}

TEST_F(SqliteStoreTest, CommitsApplyInOrderAndSurviveReopen) {
  const struct {
    const char* name;
    std::vector<ports::StoreWrite> writes;
    Records want;
  } steps[] = {
      {"insert", {{"task/1", "one"}, {"task/2", "two"}}, {{"task/1", "one"}, {"task/2", "two"}}},
      {"replace", {{"task/1", "uno"}}, {{"task/1", "uno"}, {"task/2", "two"}}},
      {"remove", {{"task/2", std::nullopt}}, {{"task/1", "uno"}}},
      {"remove what is not there", {{"task/9", std::nullopt}}, {{"task/1", "uno"}}},
      {"empty value", {{"task/3", ""}}, {{"task/1", "uno"}, {"task/3", ""}}},
      {"nothing", {}, {{"task/1", "uno"}, {"task/3", ""}}},
      {"a zero byte and quotes",
       {{"task/3", std::nullopt}, {"k'\"", std::string("a\0b", 3)}},
       {{"task/1", "uno"}, {"k'\"", std::string("a\0b", 3)}}},
  };
  auto store = must_open(path());
  std::int64_t revision = 0;
  for (const auto& step : steps) {
    SCOPED_TRACE(step.name);
    const auto committed = store->commit(step.writes, revision);
    ASSERT_TRUE(committed.has_value()) << committed.error().message;
    EXPECT_EQ(*committed, ++revision);
    for (const bool reopen : {false, true}) {
      if (reopen) {
        store.reset();
        store = must_open(path());
      }
      const auto snapshot = store->load();
      ASSERT_TRUE(snapshot.has_value());
      EXPECT_EQ(snapshot->revision, revision);
      EXPECT_EQ(snapshot->records, step.want);
    }
  }
}

TEST_F(SqliteStoreTest, RefusalsLeaveTheStoreAsItWas) {
  const std::size_t too_many = std::size_t{16} * 1024 + 1;
  std::vector<ports::StoreWrite> many;
  for (std::size_t i = 0; i < too_many; ++i) many.push_back({std::to_string(i), "x"});
  const struct {
    const char* name;
    std::vector<ports::StoreWrite> writes;
    std::int64_t expected_revision;
    ErrorCode want;
    const char* want_text;
  } cases[] = {
      {"older revision", {{"b", "2"}}, 0, ErrorCode::kConflict, "at revision 1, not 0"},
      {"newer revision", {{"b", "2"}}, 2, ErrorCode::kConflict, "at revision 1, not 2"},
      {"key twice",
       {{"b", "2"}, {"c", "3"}, {"b", std::nullopt}},
       1,
       ErrorCode::kInvalidParameter,
       "\"b\" stands twice"},
      {"empty key", {{"", "2"}}, 1, ErrorCode::kInvalidParameter, "key is empty"},
      {"too many writes", many, 1, ErrorCode::kLimitExceeded, "at most 16384"},
      {"too many bytes",
       {{"b", std::string(std::size_t{65} * 1024 * 1024, 'x')}},
       1,
       ErrorCode::kLimitExceeded,
       "at most 67108864"},
  };
  const auto store = must_open(path());
  ASSERT_TRUE(store->commit({{"a", "1"}}, 0).has_value());
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    const auto committed = store->commit(test.writes, test.expected_revision);
    ASSERT_FALSE(committed.has_value());
    EXPECT_EQ(committed.error().code, test.want);
    EXPECT_NE(committed.error().message.find(test.want_text), std::string::npos)
        << committed.error().message;
    const auto snapshot = store->load();
    ASSERT_TRUE(snapshot.has_value());
    EXPECT_EQ(snapshot->revision, 1);
    EXPECT_EQ(snapshot->records, (Records{{"a", "1"}}));
  }
  EXPECT_TRUE(store->commit({{"a", "2"}}, 1).has_value());
}

TEST_F(SqliteStoreTest, BigCommitsUpToTheLimits) {
  auto store = must_open(path());
  const ports::StoreLimits limits = store->limits();
  const std::string big(limits.bytes_per_commit - 3, 'v');
  ASSERT_TRUE(store->commit({{"big", big}}, 0).has_value());
  std::vector<ports::StoreWrite> many;
  for (std::size_t i = 0; i < limits.writes_per_commit; ++i)
    many.push_back({std::to_string(i), "x"});
  ASSERT_TRUE(store->commit(many, 1).has_value());
  store.reset();
  store = must_open(path());
  const auto snapshot = store->load();
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->records.size(), limits.writes_per_commit + 1);
  EXPECT_TRUE(snapshot->records.at("big") == big);
}

TEST_F(SqliteStoreTest, SecondOpenerIsRefusedUntilTheFirstCloses) {
  auto first = must_open(path());
  auto second = SqliteStore::open(path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  for (const std::string& text :
       {path(), "process " + std::to_string(::getpid()), std::string("--data-dir")}) {
    EXPECT_NE(second.error().message.find(text), std::string::npos) << second.error().message;
  }
  EXPECT_TRUE(first->commit({{"a", "1"}}, 0).has_value());
  first.reset();
  EXPECT_TRUE(SqliteStore::open(path()).has_value());
}

// Somebody who ignores the lock is found out by the revision.
TEST_F(SqliteStoreTest, ForeignWriterIsAConflict) {
  const auto store = must_open(path());
  run_sql(path(), "UPDATE meta SET value = 7 WHERE name = 'revision'");
  const auto committed = store->commit({{"a", "1"}}, 0);
  ASSERT_FALSE(committed.has_value());
  EXPECT_EQ(committed.error().code, ErrorCode::kConflict);
}

TEST_F(SqliteStoreTest, ForeignTransactionIsUnavailableOnlyWhileItLasts) {
  SqliteStoreOptions options;
  options.busy_timeout_ms = 1;
  const auto store = must_open(path(), options);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const auto refused = store->commit({{"a", "1"}}, 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  sqlite3_close(other);
  EXPECT_TRUE(store->commit({{"a", "1"}}, 0).has_value());
}

TEST_F(SqliteStoreTest, FilesThatAreNotOursAreRefusedAndLeftAlone) {
  const struct {
    const char* name;
    void (*damage)(const std::string& path);
    ErrorCode want;
    const char* want_text;
  } cases[] = {
      {"newer schema",
       [](const std::string& file) {
         run_sql(file, "UPDATE meta SET value = 2 WHERE name = 'schema_version'");
       },
       ErrorCode::kUnsupportedFeature, "newer cotenant"},
      {"not a database",
       [](const std::string& file) {
         std::ofstream(file, std::ios::trunc) << std::string(8192, 'x');
       },
       ErrorCode::kIo, "not a database"},
      {"a page overwritten",
       [](const std::string& file) {
         std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
         stream.seekp(4096);
         stream << std::string(4096, 'x');
       },
       ErrorCode::kIo, "damaged"},
      {"cut short", [](const std::string& file) { std::filesystem::resize_file(file, 4096); },
       ErrorCode::kIo, "damaged"},
      {"another program's",
       [](const std::string& file) {
         std::filesystem::remove(file);
         run_sql(file, "CREATE TABLE songs(title TEXT)");
       },
       ErrorCode::kIo, "another program's"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    const std::string file = folder_.path() + "/" + test.name + "/cotenant.db";
    auto store = must_open(file);
    ASSERT_TRUE(store->commit({{"a", "1"}}, 0).has_value());
    store.reset();
    test.damage(file);
    std::ifstream before_stream(file, std::ios::binary);
    const std::string before{std::istreambuf_iterator<char>(before_stream), {}};
    const auto opened = SqliteStore::open(file);
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, test.want);
    EXPECT_NE(opened.error().message.find(test.want_text), std::string::npos)
        << opened.error().message;
    EXPECT_NE(opened.error().message.find(file), std::string::npos) << opened.error().message;
    std::ifstream after_stream(file, std::ios::binary);
    const std::string after{std::istreambuf_iterator<char>(after_stream), {}};
    EXPECT_TRUE(before == after);
  }
}

// A refused commit is undone; smaller ones and reads go on.
void expect_full_is_survived(SqliteStore& store, std::size_t too_much_bytes) {
  ASSERT_TRUE(store.commit({{"a", "1"}}, 0).has_value());
  const auto refused = store.commit({{"a", "2"}, {"b", std::string(too_much_bytes, 'x')}}, 1);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable) << refused.error().message;
  EXPECT_NE(refused.error().message.find("full"), std::string::npos) << refused.error().message;
  const auto snapshot = store.load();
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->revision, 1);
  EXPECT_EQ(snapshot->records, (Records{{"a", "1"}}));
  EXPECT_TRUE(store.commit({{"a", "3"}}, 1).has_value());
}

TEST_F(SqliteStoreTest, DatabaseAtItsSizeLimit) {
  SqliteStoreOptions options;
  options.max_bytes = 64 * 1024;
  expect_full_is_survived(*must_open(path(), options), 128 * 1024);
}

TEST_F(SqliteStoreTest, FullDisk) {
  SmallDisk disk(folder_.path() + "/disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs needs root";
  expect_full_is_survived(*must_open(folder_.path() + "/disk/cotenant.db"), 512 * 1024);
}

TEST_F(SqliteStoreTest, ReadOnlyDiskIsRefusedWithTheRemedy) {
  SmallDisk disk(folder_.path() + "/disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs needs root";
  const std::string file = folder_.path() + "/disk/cotenant.db";
  must_open(file).reset();
  disk.make_read_only();
  for (const std::string& target : {file, folder_.path() + "/disk/new/cotenant.db"}) {
    const auto opened = SqliteStore::open(target);
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, ErrorCode::kUnavailable);
    EXPECT_NE(opened.error().message.find("Read-only file system"), std::string::npos)
        << opened.error().message;
    EXPECT_NE(opened.error().message.find("--data-dir"), std::string::npos)
        << opened.error().message;
  }
  disk.make_writable();
  EXPECT_TRUE(SqliteStore::open(file).has_value());
}

// Our descriptor of the write-ahead log.
int wal_descriptor(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == path + "-wal") {
      return std::stoi(entry.path().filename());
    }
  }
  return -1;
}

// The log's descriptor is exchanged under SQLite: /dev/null takes the writes and then refuses to
// sync, a directory refuses the writes themselves.
TEST_F(SqliteStoreTest, IoErrorInCommitIsUnknownAndStaysSo) {
  for (const char* substitute : {"/dev/null", "/"}) {
    SCOPED_TRACE(substitute);
    const std::string file = folder_.path() + "/io/cotenant.db";
    auto store = must_open(file);
    const auto before = store->load();
    ASSERT_TRUE(before.has_value());
    ASSERT_TRUE(store->commit({{"a", "1"}}, before->revision).has_value());
    const int wal = wal_descriptor(file);
    ASSERT_GE(wal, 0);
    const int broken = ::open(substitute, std::string(substitute) == "/" ? O_RDONLY : O_RDWR);
    ASSERT_GE(broken, 0);
    ASSERT_EQ(::dup2(broken, wal), wal);
    ::close(broken);

    const auto unknown = store->commit({{"a", "2"}}, before->revision + 1);
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error().code, ErrorCode::kIo) << unknown.error().message;
    const auto again = store->commit({{"a", "2"}}, before->revision + 1);
    ASSERT_FALSE(again.has_value());
    EXPECT_EQ(again.error().code, ErrorCode::kIo);
    const auto load = store->load();
    ASSERT_FALSE(load.has_value());
    EXPECT_EQ(load.error().code, ErrorCode::kIo);

    // Opened anew the file is whole.
    store.reset();
    store = must_open(file);
    ASSERT_TRUE(store->load().has_value());
  }
}

// The child acknowledges each commit by a byte and is killed in the middle; what it acknowledged
// must be there, and at most the one commit that was in flight besides.
TEST_F(SqliteStoreTest, KilledWriterLosesNoAcknowledgedCommit) {
  std::int64_t stored = 0;
  for (const int acknowledged_before_kill : {1, 7, 40}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = SqliteStore::open(path());
      std::int64_t revision = store ? stored : INT64_MAX;
      while (store) {
        const std::string text = std::to_string(revision + 1);
        const auto committed = (*store)->commit({{"last", text}, {"n/" + text, text}}, revision);
        if (!committed || ::write(ends[1], "x", 1) != 1) break;
        revision = *committed;
      }
      ::_exit(1);
    }
    ::close(ends[1]);
    std::int64_t acknowledged = stored;
    char byte = 0;
    for (int i = 0; i < acknowledged_before_kill; ++i) {
      ASSERT_EQ(::read(ends[0], &byte, 1), 1);
      ++acknowledged;
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    while (::read(ends[0], &byte, 1) == 1) ++acknowledged;
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    const auto store = must_open(path());
    ASSERT_NE(store, nullptr);
    const auto snapshot = store->load();
    ASSERT_TRUE(snapshot.has_value());
    stored = snapshot->revision;
    EXPECT_GE(stored, acknowledged);
    EXPECT_LE(stored, acknowledged + 1);
    EXPECT_EQ(snapshot->records.at("last"), std::to_string(stored));
    EXPECT_EQ(snapshot->records.size(), static_cast<std::size_t>(stored) + 1);
  }
}

}  // namespace
}  // namespace cotenant::adapters
