#include "sim/sim_store.h"

#include <fmt/format.h>

#include <set>

namespace cotenant::sim {

using base::ErrorCode;
using base::fail;

base::Result<ports::StoreSnapshot> SimStore::load() {
  return ports::StoreSnapshot{revision_, records_};
}

base::Result<std::int64_t> SimStore::commit(const std::vector<ports::StoreWrite>& writes,
                                            std::int64_t expected_revision) {
  if (!writer_alive_) return fail(ErrorCode::kIo, "the writer was killed");
  if (expected_revision != revision_) {
    journal_.violation("a commit expects revision {} of {}", expected_revision, revision_);
    return fail(ErrorCode::kConflict, "another writer");
  }
  std::set<std::string> keys;
  std::size_t bytes = 0;
  for (const ports::StoreWrite& write : writes) {
    bytes += write.key.size() + (write.value ? write.value->size() : 0);
    if (!keys.insert(write.key).second) journal_.violation("key {} twice in a commit", write.key);
  }
  if (writes.size() > limits().writes_per_commit || bytes > limits().bytes_per_commit) {
    journal_.violation("a commit of {} writes and {} bytes", writes.size(), bytes);
    return fail(ErrorCode::kLimitExceeded, "too large");
  }

  if (full_commits_ == 0 && dice_.per_mille(faults_.commit_refused)) {
    full_commits_ = static_cast<int>(dice_.between(1, 15));
    journal_.note("store: the disk is full");
  }
  if (full_commits_ > 0) {
    --full_commits_;
    return fail(ErrorCode::kUnavailable, "the disk is full");
  }
  const bool killed = dice_.per_mille(faults_.killed_at_commit);
  const bool unknown = !killed && dice_.per_mille(faults_.commit_unknown);
  const bool stored = !(killed || unknown) || dice_.per_mille(500);
  if (stored) {
    for (const ports::StoreWrite& write : writes) {
      if (write.value) {
        records_[write.key] = *write.value;
      } else {
        records_.erase(write.key);
      }
    }
    ++revision_;
  }
  if (killed) {
    journal_.note("store: the control plane is killed {} commit {}", stored ? "after" : "before",
                  expected_revision + 1);
    writer_alive_ = false;
    on_killed_();
    return fail(ErrorCode::kIo, "the writer was killed");
  }
  if (unknown) {
    journal_.note("store: fsync fails, commit {} is {}", expected_revision + 1,
                  stored ? "stored" : "not stored");
    return fail(ErrorCode::kIo, "fsync failed");
  }
  return revision_;
}

}  // namespace cotenant::sim
