// ports::Store in one SQLite file: WAL with synchronous=FULL, so that a commit is on the disk when
// commit() returns. Two tables: records(key, value) and meta(name, value) with the schema version
// and the revision.
//
// One control plane per file: an flock on <file>.lock is held while the store is open. It was
// chosen over SQLite's exclusive locking mode because the kernel lifts it with the process, however
// that ends, it is taken before the database is touched, the file names its holder, and `sqlite3`
// can still look into a running installation. The revision check in each commit guards against
// whoever ignores the lock.
//
// One thread. After kIo the outcome is unknown and SQLite's view of the file can't be trusted (a
// failed fsync may drop pages): every later call answers kIo, and the store must be opened anew.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ports/store.h"

namespace cotenant::adapters {

struct SqliteStoreOptions {
  // The database grows to this and no further; a commit beyond is kUnavailable.
  std::int64_t max_bytes = std::int64_t{16} * 1024 * 1024 * 1024;
  // How long a commit waits for a foreign reader or writer (`sqlite3`, a backup).
  int busy_timeout_ms = 2000;
};

class SqliteStore final : public ports::Store {
 public:
  static constexpr int kSchemaVersion = 1;

  // Opens or makes the database (0600) and its folder (0700; the folders above as well). Errors,
  // each naming the file and the remedy:
  //   kUnavailable         in use by another cotenant, or no permission, read-only, disk full
  //   kUnsupportedFeature  written by a newer cotenant
  //   kIo                  damaged, not a database, or not cotenant's
  static base::Result<std::unique_ptr<SqliteStore>> open(const std::string& path,
                                                         const SqliteStoreOptions& options = {});
  ~SqliteStore() override;

  base::Result<ports::StoreSnapshot> load() override;
  // Beside the port's errors: kInvalidParameter for an empty key or one that stands twice,
  // kLimitExceeded for a batch above limits(). In both cases nothing is stored.
  base::Result<std::int64_t> commit(const std::vector<ports::StoreWrite>& writes,
                                    std::int64_t expected_revision) override;
  ports::StoreLimits limits() const override;

 private:
  struct Impl;
  explicit SqliteStore(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace cotenant::adapters
