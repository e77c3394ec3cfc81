// The callers of a run: random calls, and what they were answered.
//
// A call is acknowledged, surely refused, or nobody knows (its control plane was killed, or stopped
// not knowing what is stored). Then: what was acknowledged is there; what was refused is not; what
// nobody knows is there whole or not at all, and stays so. Every task carries its call in startedBy.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/state.h"
#include "sim/plane.h"

namespace cotenant::sim {

class Client {
 public:
  Client(Env& env, Plane& plane);

  // To be named before the first call.
  void know_instance(const std::string& id);
  // One call of a random kind.
  void call();
  // Asks that every task ends that does not end yet.
  void stop_everything();
  // The definitions that a run needs; until they are acknowledged.
  void register_definitions();

  // Against what has been stored. `forgotten`: tasks that were there, had stopped and were expired.
  void check(const core::State& state, const std::set<std::string>& forgotten);

  std::int64_t acknowledged() const { return acknowledged_; }
  std::int64_t unknown() const { return unknown_; }
  std::int64_t tasks_placed() const { return tasks_placed_; }
  // Still to be answered, or forgotten by a killed plane.
  bool idle() const { return waiting_ == 0; }

 private:
  enum class Fate { kAcknowledged, kRefused, kUnknown };
  struct Run {
    core::RunTask command;
    int attempts = 0;                            // that nobody knows of, or that wait
    std::set<std::string> acknowledged;          // ids
    std::optional<std::set<std::string>> found;  // ids, when tasks of it were first seen
  };

  using Settle = std::function<void(Fate, const core::Reply*)>;
  void send(core::Command command, Settle settle);
  void run_task();
  void repeat_run_task();
  void send_run(const std::string& name);
  void start_task();
  void expect_tasks(core::Command command, const std::string& name);
  void stop_task();
  void update_instance();
  void deregister_instance();
  void deregister(core::DeregisterInstance command);
  void register_definition(std::size_t kind);
  void create_cluster();

  Env& env_;
  Plane& plane_;
  std::vector<std::string> instances_;
  std::map<std::string, Run> runs_;                 // by startedBy
  std::vector<std::string> with_token_;             // startedBy
  std::map<std::string, std::string> tasks_;        // acknowledged id -> startedBy
  std::vector<std::string> task_ids_;               // to choose from
  std::set<std::string> stopped_;                   // acknowledged StopTask
  std::map<std::string, std::string> definitions_;  // acknowledged "family:revision" -> image
  std::set<std::string> clusters_;                  // acknowledged
  std::int64_t calls_ = 0;
  std::int64_t waiting_ = 0;
  std::int64_t acknowledged_ = 0;
  std::int64_t unknown_ = 0;
  std::int64_t tasks_placed_ = 0;
};

}  // namespace cotenant::sim
