#include "adapters/sqlite_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file_lock.h"
#include "base/unique_fd.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

// "cotn": tells our files from other programs' databases.
constexpr std::int64_t kApplicationId = 0x636f746e;
// SQLite has no limit of its own here; these keep one commit's memory and time within bounds.
constexpr std::size_t kWritesPerCommit = 16 * 1024;
constexpr std::size_t kBytesPerCommit = 64 * 1024 * 1024;

// `records` has a rowid on purpose: WITHOUT ROWID keeps the value in the index entry, and to
// compare keys SQLite then reads whole values above about 1 kB, which most records are (measured:
// 16k inserts into a table with one value of 64 MiB took 15 s instead of 1.7 s).
constexpr char kSchema[] =
    "CREATE TABLE records(key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO meta VALUES('revision', 0);";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

int primary_code(int code) {
  return code & 0xff;
}

int prepare(sqlite3* database, std::string_view sql, Statement& statement) {
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v3(database, sql.data(), static_cast<int>(sql.size()), 0, &raw, nullptr);
  statement.reset(raw);
  return code;
}

void bind_text(const Statement& statement, int index, std::string_view text) {
  // The text outlives the step; reset_and_clear() lets go of it.
  sqlite3_bind_text64(statement.get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void reset_and_clear(const Statement& statement) {
  sqlite3_reset(statement.get());
  sqlite3_clear_bindings(statement.get());
}

std::string column_text(const Statement& statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), column));
  const int bytes = sqlite3_column_bytes(statement.get(), column);
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(bytes));
}

int execute(sqlite3* database, const char* sql) {
  return sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
}

// One integer from a statement that gives one row of one column.
int query_integer(sqlite3* database, std::string_view sql, std::int64_t& value) {
  Statement statement;
  if (const int code = prepare(database, sql, statement); code != SQLITE_OK) return code;
  const int code = sqlite3_step(statement.get());
  if (code != SQLITE_ROW) return code == SQLITE_DONE ? SQLITE_CORRUPT : code;
  value = sqlite3_column_int64(statement.get(), 0);
  return SQLITE_OK;
}

int query_text(sqlite3* database, std::string_view sql, std::string& value) {
  Statement statement;
  if (const int code = prepare(database, sql, statement); code != SQLITE_OK) return code;
  const int code = sqlite3_step(statement.get());
  if (code != SQLITE_ROW) return code == SQLITE_DONE ? SQLITE_CORRUPT : code;
  value = column_text(statement, 0);
  return SQLITE_OK;
}

// Refusals in COMMIT that come before the commit record is written.
bool is_sure_refusal(int code) {
  switch (primary_code(code)) {
    case SQLITE_FULL:
    case SQLITE_READONLY:
    case SQLITE_BUSY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return true;
    default:
      return false;
  }
}

bool is_damaged(int code) {
  return primary_code(code) == SQLITE_CORRUPT || primary_code(code) == SQLITE_NOTADB;
}

base::Status system_error(const std::string& path, int reason) {
  return base::fail(ErrorCode::kUnavailable,
                    fmt::format("{}: {}; cotenant must be able to write there "
                                "(or choose another --data-dir)",
                                path, std::strerror(reason)));
}

base::Status sync_folder(const std::string& path) {
  const base::UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return system_error(path, errno);
  return {};
}

// Makes the missing folders, and their names durable.
base::Status make_folder(const std::string& path) {
  if (path.empty() || path == "/" || ::access(path.c_str(), F_OK) == 0) return {};
  std::string parent = std::filesystem::path(path).parent_path();
  if (auto status = make_folder(parent); !status) return status;
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error(path, errno);
  return sync_folder(parent.empty() ? "." : parent);
}

// SQLite makes its -wal and -shm files with the mode of this one.
base::Status make_file(const std::string& path, const std::string& folder) {
  const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file || ::fchmod(file.get(), 0600) != 0) return system_error(path, errno);
  return sync_folder(folder);
}

}  // namespace

struct SqliteStore::Impl {
  Impl(std::string database_path, base::FileLock file_lock)
      : path(std::move(database_path)), lock(std::move(file_lock)) {}

  base::Status connect(const SqliteStoreOptions& options);
  base::Status check_contents();
  base::Status check_owner();
  base::Status create_schema();
  base::Status prepare_statements();
  base::Error open_error(int code) const;

  int read_revision(std::int64_t& revision) const;
  int write_all(const std::vector<ports::StoreWrite>& writes, std::int64_t new_revision) const;
  int roll_back() const;
  base::Error failed_commit(int code, bool committing, std::int64_t expected_revision);
  base::Error fail_for_good(std::string message);

  const std::string path;
  base::FileLock lock;  // outlives the connection: members go in reverse order
  Database database;    // outlives the statements
  Statement upsert;
  Statement remove;
  Statement select_revision;
  Statement update_revision;
  std::optional<base::Error> broken;  // set by the first kIo
};

base::Error SqliteStore::Impl::open_error(int code) const {
  const std::string reason = sqlite3_errmsg(database.get());
  if (is_damaged(code)) {
    return {ErrorCode::kIo,
            fmt::format("{} is damaged or not a database ({}): restore a backup, or move "
                        "it away to begin with an empty control plane",
                        path, reason)};
  }
  if (primary_code(code) == SQLITE_FULL) {
    return {ErrorCode::kUnavailable, fmt::format("{}: {}: free some space", path, reason)};
  }
  return {is_sure_refusal(code) ? ErrorCode::kUnavailable : ErrorCode::kIo,
          fmt::format("{}: {} (SQLite error {})", path, reason, code)};
}

base::Status SqliteStore::Impl::connect(const SqliteStoreOptions& options) {
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int opened = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  database.reset(raw);
  if (opened != SQLITE_OK) return base::fail(open_error(opened));
  sqlite3_busy_timeout(raw, options.busy_timeout_ms);
  return {};
}

base::Status SqliteStore::Impl::check_contents() {
  std::string verdict;
  if (const int code = query_text(database.get(), "PRAGMA quick_check(1)", verdict);
      code != SQLITE_OK) {
    return base::fail(open_error(code));
  }
  if (verdict == "ok") return {};
  return base::fail(ErrorCode::kIo,
                    fmt::format("{} is damaged ({}): restore a backup, or move it away to "
                                "begin with an empty control plane",
                                path, verdict));
}

// An empty file is made ours; a full one must be, and of a version that we know.
base::Status SqliteStore::Impl::check_owner() {
  std::int64_t application = 0;
  std::int64_t version = 0;
  std::int64_t objects = 0;
  for (const auto& [sql, value] : {std::pair{"PRAGMA application_id", &application},
                                   std::pair{"PRAGMA user_version", &version},
                                   std::pair{"SELECT count(*) FROM sqlite_master", &objects}}) {
    if (const int code = query_integer(database.get(), sql, *value); code != SQLITE_OK) {
      return base::fail(open_error(code));
    }
  }
  if (application == 0 && version == 0 && objects == 0) return create_schema();
  if (application != kApplicationId) {
    return base::fail(
        ErrorCode::kIo,
        fmt::format("{} is another program's database: choose another --data-dir", path));
  }
  if (const int code = query_integer(
          database.get(), "SELECT value FROM meta WHERE name = 'schema_version'", version);
      code != SQLITE_OK) {
    return base::fail(open_error(code));
  }
  if (version > kSchemaVersion) {
    return base::fail(
        ErrorCode::kUnsupportedFeature,
        fmt::format("{} has schema version {}, this cotenant knows up to {}: it was written "
                    "by a newer cotenant; use that one, or another --data-dir",
                    path, version, kSchemaVersion));
  }
  return {};
}

base::Status SqliteStore::Impl::create_schema() {
  const std::string sql = fmt::format(
      "BEGIN IMMEDIATE; {} INSERT INTO meta VALUES('schema_version', {}); "
      "PRAGMA application_id = {}; COMMIT;",
      kSchema, kSchemaVersion, kApplicationId);
  const int code = execute(database.get(), sql.c_str());
  if (code == SQLITE_OK) return {};
  base::Error error = open_error(code);
  roll_back();
  return base::fail(std::move(error));
}

base::Status SqliteStore::Impl::prepare_statements() {
  const std::pair<std::string_view, Statement*> statements[] = {
      {"INSERT INTO records VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
       &upsert},
      {"DELETE FROM records WHERE key = ?1", &remove},
      {"SELECT value FROM meta WHERE name = 'revision'", &select_revision},
      {"UPDATE meta SET value = ?1 WHERE name = 'revision'", &update_revision},
  };
  for (const auto& [sql, statement] : statements) {
    if (const int code = prepare(database.get(), sql, *statement); code != SQLITE_OK) {
      return base::fail(open_error(code));
    }
  }
  return {};
}

int SqliteStore::Impl::read_revision(std::int64_t& revision) const {
  const int code = sqlite3_step(select_revision.get());
  if (code == SQLITE_ROW) revision = sqlite3_column_int64(select_revision.get(), 0);
  sqlite3_reset(select_revision.get());
  return code == SQLITE_ROW ? SQLITE_OK : code == SQLITE_DONE ? SQLITE_CORRUPT : code;
}

int SqliteStore::Impl::write_all(const std::vector<ports::StoreWrite>& writes,
                                 std::int64_t new_revision) const {
  for (const ports::StoreWrite& write : writes) {
    const Statement& statement = write.value ? upsert : remove;
    bind_text(statement, 1, write.key);
    if (write.value) bind_text(statement, 2, *write.value);
    const int code = sqlite3_step(statement.get());
    reset_and_clear(statement);
    if (code != SQLITE_DONE) return code;
  }
  sqlite3_bind_int64(update_revision.get(), 1, new_revision);
  const int code = sqlite3_step(update_revision.get());
  reset_and_clear(update_revision);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

// Some errors have rolled back already.
int SqliteStore::Impl::roll_back() const {
  return sqlite3_get_autocommit(database.get()) != 0 ? SQLITE_OK
                                                     : execute(database.get(), "ROLLBACK");
}

base::Error SqliteStore::Impl::fail_for_good(std::string message) {
  broken = base::Error{ErrorCode::kIo, std::move(message)};
  return *broken;
}

// Decides between "surely not stored" and "unknown". Before COMMIT every refusal is sure; in COMMIT
// only those that come before the commit record. Either way the file must then say so itself.
base::Error SqliteStore::Impl::failed_commit(int code, bool committing,
                                             std::int64_t expected_revision) {
  const std::string reason =
      fmt::format("{}: {} (SQLite error {})", path, sqlite3_errmsg(database.get()), code);
  const bool may_be_sure = committing ? is_sure_refusal(code) : !is_damaged(code);
  if (!may_be_sure) {
    roll_back();
    return fail_for_good(reason + "; it is not known whether the change is stored");
  }
  std::int64_t revision = -1;
  if (roll_back() != SQLITE_OK || read_revision(revision) != SQLITE_OK ||
      revision != expected_revision) {
    return fail_for_good(reason + "; the change could not be undone with certainty");
  }
  return {ErrorCode::kUnavailable, reason};
}

SqliteStore::SqliteStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteStore::~SqliteStore() = default;

base::Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const std::string& path,
                                                             const SqliteStoreOptions& options) {
  std::string folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (auto status = make_folder(folder); !status) return base::fail(status.error());
  auto lock = base::FileLock::acquire(path + ".lock");
  if (!lock) {
    const char* remedy =
        lock.error().code == ErrorCode::kConflict
            ? "stop that cotenant, or choose another --data-dir"
            : "cotenant must be able to write there (or choose another --data-dir)";
    return base::fail(ErrorCode::kUnavailable, fmt::format("the database {} cannot be used: {}; {}",
                                                           path, lock.error().message, remedy));
  }
  if (auto status = make_file(path, folder); !status) return base::fail(status.error());

  auto impl = std::make_unique<Impl>(path, std::move(*lock));
  if (auto status = impl->connect(options); !status) return base::fail(status.error());
  // Looked at before anything is written: what is not ours is left as it is.
  if (auto status = impl->check_contents(); !status) return base::fail(status.error());
  if (auto status = impl->check_owner(); !status) return base::fail(status.error());
  sqlite3* database = impl->database.get();
  std::string mode;
  if (const int code = query_text(database, "PRAGMA journal_mode = WAL", mode); code != SQLITE_OK) {
    return base::fail(impl->open_error(code));
  }
  if (mode != "wal") {
    return base::fail(
        ErrorCode::kIo,
        fmt::format("{}: the file system does not support SQLite's WAL mode (network file "
                    "systems do not): choose a --data-dir on a local disk",
                    path));
  }
  if (const int code = execute(database, "PRAGMA synchronous = FULL"); code != SQLITE_OK) {
    return base::fail(impl->open_error(code));
  }
  std::int64_t page_bytes = 0;
  if (const int code = query_integer(database, "PRAGMA page_size", page_bytes); code != SQLITE_OK) {
    return base::fail(impl->open_error(code));
  }
  const std::string limit =
      fmt::format("PRAGMA max_page_count = {}", options.max_bytes / page_bytes);
  if (const int code = execute(database, limit.c_str()); code != SQLITE_OK) {
    return base::fail(impl->open_error(code));
  }
  if (auto status = impl->prepare_statements(); !status) return base::fail(status.error());
  return std::unique_ptr<SqliteStore>(new SqliteStore(std::move(impl)));
}

base::Result<ports::StoreSnapshot> SqliteStore::load() {
  if (impl_->broken) return base::fail(*impl_->broken);
  sqlite3* database = impl_->database.get();
  ports::StoreSnapshot snapshot;
  // One transaction, so that the revision and the records belong together.
  int code = execute(database, "BEGIN");
  if (code == SQLITE_OK) code = impl_->read_revision(snapshot.revision);
  Statement statement;
  if (code == SQLITE_OK)
    code = prepare(database, "SELECT key, value FROM records ORDER BY key", statement);
  while (code == SQLITE_OK && (code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    snapshot.records.emplace_hint(snapshot.records.end(), column_text(statement, 0),
                                  column_text(statement, 1));
    code = SQLITE_OK;
  }
  if (code == SQLITE_DONE) {
    statement.reset();
    code = execute(database, "COMMIT");
  }
  if (code == SQLITE_OK) return snapshot;
  base::Error error = impl_->open_error(code);
  statement.reset();
  impl_->roll_back();
  return base::fail(std::move(error));
}

base::Result<std::int64_t> SqliteStore::commit(const std::vector<ports::StoreWrite>& writes,
                                               std::int64_t expected_revision) {
  if (impl_->broken) return base::fail(*impl_->broken);
  if (writes.size() > kWritesPerCommit) {
    return base::fail(ErrorCode::kLimitExceeded,
                      fmt::format("a commit of {} writes; at most {} are allowed", writes.size(),
                                  kWritesPerCommit));
  }
  std::vector<std::string_view> keys;
  std::size_t bytes = 0;
  for (const ports::StoreWrite& write : writes) {
    keys.push_back(write.key);
    bytes += write.key.size() + (write.value ? write.value->size() : 0);
  }
  if (bytes > kBytesPerCommit) {
    return base::fail(
        ErrorCode::kLimitExceeded,
        fmt::format("a commit of {} bytes; at most {} are allowed", bytes, kBytesPerCommit));
  }
  std::ranges::sort(keys);
  if (const auto twice = std::ranges::adjacent_find(keys); twice != keys.end()) {
    return base::fail(ErrorCode::kInvalidParameter,
                      fmt::format("the key \"{}\" stands twice in one commit", *twice));
  }
  if (!keys.empty() && keys.front().empty()) {
    return base::fail(ErrorCode::kInvalidParameter, "a record's key is empty");
  }

  sqlite3* database = impl_->database.get();
  std::int64_t revision = 0;
  int code = execute(database, "BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = impl_->read_revision(revision);
  if (code == SQLITE_OK && revision != expected_revision) {
    impl_->roll_back();
    return base::fail(ErrorCode::kConflict,
                      fmt::format("{} is at revision {}, not {}: another process writes to it",
                                  impl_->path, revision, expected_revision));
  }
  if (code == SQLITE_OK) code = impl_->write_all(writes, expected_revision + 1);
  if (code != SQLITE_OK) return base::fail(impl_->failed_commit(code, false, expected_revision));
  code = execute(database, "COMMIT");
  if (code != SQLITE_OK) return base::fail(impl_->failed_commit(code, true, expected_revision));
  return expected_revision + 1;
}

ports::StoreLimits SqliteStore::limits() const {
  return {kWritesPerCommit, kBytesPerCommit};
}

}  // namespace cotenant::adapters
