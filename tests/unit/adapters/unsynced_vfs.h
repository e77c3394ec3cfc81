// A SQLite VFS that knows what would be lost: it passes everything on to the system's own and keeps a
// record of every change of a file, so that the folder can be rebuilt as a power failure at any
// moment might have left it.
//
// What such a failure may leave, by POSIX and as file systems with ordered metadata do it: data that
// was written and not synced may be there, whole, in part (by sectors of 512 bytes) or not at all, in
// any order; a file that was made, removed or cut short may be so or not until any file is synced.
// Becomes the default VFS with its construction; one at a time, one thread.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/prng.h"

namespace cotenant::adapters {

class UnsyncedVfs {
 public:
  // Files below `folder` are watched; their content at this moment counts as durable.
  explicit UnsyncedVfs(std::string folder);
  ~UnsyncedVfs();
  UnsyncedVfs(const UnsyncedVfs&) = delete;
  UnsyncedVfs& operator=(const UnsyncedVfs&) = delete;

  enum class Loss { kAllUnsynced, kNothing, kTorn };

  // Moments so far: after each change of a file, and after each sync.
  std::size_t moments() const { return changes_.size(); }
  // The files as they may be found when the power fails at `moment`.
  std::map<std::string, std::string> after_power_failure(std::size_t moment, Loss loss,
                                                         base::Prng& prng) const;

  // From now on this many writes succeed, then all answer "disk full" until mended; -1: mended.
  void fill_after(int writes) { writes_left_ = writes; }

 private:
  enum class Kind { kMade, kWritten, kCut, kRemoved, kSynced };
  struct Change {
    Kind kind = Kind::kWritten;
    std::string name;
    std::int64_t offset = 0;  // or the new size
    std::string data;
  };
  struct File;
  struct Methods;

  bool knows(const std::string& name) const;
  void record(Change change);

  std::string folder_;
  sqlite3_vfs vfs_{};
  sqlite3_vfs* system_ = nullptr;
  std::map<std::string, std::string> durable_;  // at the start
  std::vector<Change> changes_;
  int writes_left_ = -1;
};

}  // namespace cotenant::adapters
