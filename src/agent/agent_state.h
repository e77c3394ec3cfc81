// What an agent must not forget: who it is, and how often it has connected. One small file in the
// data folder, replaced by rename and synced, so that a crash leaves the old or the new one.
//
// Owned by one thread. Holds a lock on the data folder: two agents with one identity would undo
// each other's work. Errors: kIo, naming the file and the remedy; kConflict, another agent has the
// folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_lock.h"
#include "base/prng.h"
#include "base/result.h"

namespace cotenant::agent {

class AgentState {
 public:
  // Makes the folder (0700) and the identity when they are not there yet.
  static base::Result<AgentState> open(const std::string& data_dir, base::Prng& prng);
  // For whoever cleans up: the identity in that folder without opening it, nothing where no agent
  // has been; and the files that an agent makes there. Errors: kIo.
  static base::Result<std::optional<std::string>> read_instance_id(const std::string& data_dir);
  static std::vector<std::string> file_names();

  const std::string& instance_id() const { return instance_id_; }
  std::int64_t epoch() const { return epoch_; }
  // One for each attempt to connect; no two connections ever have the same, because a block of them
  // is reserved durably before its first is given out. Within a block nothing is written, so an
  // agent whose disk is full or read-only can connect again. On an error the epoch is unchanged.
  base::Result<std::int64_t> next_epoch();
  static constexpr std::int64_t kEpochsReserved = 10'000;

 private:
  AgentState(std::string folder, base::FileLock lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  base::Status write(std::int64_t epoch) const;

  std::string folder_;
  std::string instance_id_;
  std::int64_t epoch_ = 0;
  std::int64_t reserved_ = 0;  // what the file has
  base::FileLock lock_;
};

// Changes with each boot of the machine. Errors: kIo.
base::Result<std::string> read_boot_id();

}  // namespace cotenant::agent
