// What must hold of any state of the control plane that anybody may see, and from one to the next.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/state.h"
#include "sim/journal.h"

namespace cotenant::sim {

class StateChecks {
 public:
  explicit StateChecks(Journal& journal) : journal_(journal) {}

  // Reservations against the tasks; and that nothing went back since the last call.
  void check(const core::State& state);
  // Tasks that had stopped before they went.
  const std::set<std::string>& forgotten() const { return forgotten_; }
  // The state is what the store would give back: records and what is derived from them.
  void check_stored(const core::State& state, const std::map<std::string, std::string>& records);

 private:
  struct Seen {
    core::TaskStatus last_status = core::TaskStatus::kPending;
    core::DesiredStatus desired_status = core::DesiredStatus::kRunning;
    std::int64_t version = 0;
  };

  void check_task(const core::State& state, const core::Task& task);
  void check_history(const core::Task& task);
  void check_clusters(const core::State& state);
  void check_instance(const core::State& state, const core::Instance& instance);

  Journal& journal_;
  std::map<std::string, Seen> seen_;  // by task id
  std::set<std::string> forgotten_;
};

// Every record of the state, as the store has it.
std::map<std::string, std::string> encode_state(const core::State& state);

// Every reservation as text.
std::string reservations_of(const core::State& state);

}  // namespace cotenant::sim
