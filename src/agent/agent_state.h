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
#include <vector>

#include "base/prng.h"
#include "base/result.h"

namespace cotenant::agent {

class AgentState {
 public:
  // Makes the folder (0700) and the identity when they are not there yet.
  static base::Result<AgentState> open(const std::string& data_dir, base::Prng& prng);
  ~AgentState();
  AgentState(AgentState&& other) noexcept;
  AgentState& operator=(AgentState&& other) noexcept;
  AgentState(const AgentState&) = delete;
  AgentState& operator=(const AgentState&) = delete;

  // For whoever cleans up: the identity in that folder without opening it, nothing where no agent
  // has been; and the files that an agent makes there. Errors: kIo.
  static base::Result<std::optional<std::string>> read_instance_id(const std::string& data_dir);
  static std::vector<std::string> file_names();

  const std::string& instance_id() const { return instance_id_; }
  std::int64_t epoch() const { return epoch_; }
  // One for each attempt to connect; durable when it returns, so that no two connections ever have
  // the same. On an error the epoch is unchanged.
  base::Result<std::int64_t> next_epoch();

 private:
  AgentState() = default;
  base::Status write(std::int64_t epoch) const;

  std::string folder_;
  std::string instance_id_;
  std::int64_t epoch_ = 0;
  int lock_fd_ = -1;
};

// Changes with each boot of the machine. Errors: kIo.
base::Result<std::string> read_boot_id();

}  // namespace cotenant::agent
