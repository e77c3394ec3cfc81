// Where the control plane's records live. Implemented by adapters/sqlite_store (one control plane).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cotenant::ports {

// One change of one record. Without a value the record is removed.
struct StoreWrite {
  std::string key;
  std::optional<std::string> value;
};

struct StoreSnapshot {
  std::int64_t revision = 0;
  std::map<std::string, std::string> records;
};

struct StoreLimits {
  std::size_t writes_per_commit = 0;
  std::size_t bytes_per_commit = 0;
};

// Owned by one thread (the core loop's).
// commit() is all or nothing and durable when it returns. Its errors:
//   kConflict     the store is not at `expected_revision`: someone else writes. Stop.
//   kUnavailable  refused and surely not stored (disk full, read-only, busy). Roll back, keep serving.
//   kIo           the outcome is unknown (an fsync failed). Stop the control plane.
class Store {
 public:
  virtual ~Store() = default;
  virtual base::Result<StoreSnapshot> load() = 0;
  // Returns the new revision, expected_revision + 1. No key may stand twice in `writes`.
  virtual base::Result<std::int64_t> commit(const std::vector<StoreWrite>& writes,
                                            std::int64_t expected_revision) = 0;
  virtual StoreLimits limits() const = 0;
};

}  // namespace cotenant::ports
