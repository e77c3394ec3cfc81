#include "fakes/memory_store.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace cotenant::fakes {

using base::ErrorCode;
using base::fail;

base::Result<ports::StoreSnapshot> MemoryStore::load() {
  const std::lock_guard lock(mutex_);
  if (load_fails_) return fail(ErrorCode::kIo, "the store cannot be read");
  return ports::StoreSnapshot{revision_, records_};
}

base::Status MemoryStore::check(const std::vector<ports::StoreWrite>& writes) const {
  std::set<std::string> keys;
  std::size_t bytes = 0;
  for (const ports::StoreWrite& write : writes) {
    bytes += write.key.size() + (write.value ? write.value->size() : 0);
    if (!keys.insert(write.key).second) {
      return fail(ErrorCode::kInvalidParameter,
                  fmt::format("the key '{}' stands twice in one commit", write.key));
    }
  }
  if (writes.size() <= limits_.writes_per_commit && bytes <= limits_.bytes_per_commit) return {};
  return fail(
      ErrorCode::kLimitExceeded,
      fmt::format("a commit of {} writes and {} bytes; at most {} and {} are allowed",
                  writes.size(), bytes, limits_.writes_per_commit, limits_.bytes_per_commit));
}

base::Result<std::int64_t> MemoryStore::commit(const std::vector<ports::StoreWrite>& writes,
                                               std::int64_t expected_revision) {
  const std::lock_guard lock(mutex_);
  if (auto status = check(writes); !status) return fail(status.error());
  if (fault_ == Fault::kRefused) return fail(ErrorCode::kUnavailable, "the disk is full");
  if (fault_ == Fault::kUnknownNotStored) return fail(ErrorCode::kIo, "fsync failed");
  if (fault_ == Fault::kConflict || expected_revision != revision_) {
    return fail(ErrorCode::kConflict,
                fmt::format("the store is at revision {}, not {}", revision_, expected_revision));
  }
  for (const ports::StoreWrite& write : writes) {
    if (write.value) {
      records_[write.key] = *write.value;
    } else {
      records_.erase(write.key);
    }
  }
  commits_.push_back(writes);
  ++revision_;
  if (fault_ == Fault::kUnknownStored) return fail(ErrorCode::kIo, "fsync failed");
  return revision_;
}

void MemoryStore::set_fault(Fault fault) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
}

void MemoryStore::set_load_fails(bool fails) {
  const std::lock_guard lock(mutex_);
  load_fails_ = fails;
}

std::map<std::string, std::string> MemoryStore::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

void MemoryStore::put(const std::string& key, std::string value) {
  const std::lock_guard lock(mutex_);
  records_[key] = std::move(value);
}

std::vector<std::vector<ports::StoreWrite>> MemoryStore::commits() const {
  const std::lock_guard lock(mutex_);
  return commits_;
}

}  // namespace cotenant::fakes
