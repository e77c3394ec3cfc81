// The callers of a run: random calls, and what they were answered.
//
// What was acknowledged is there; what was refused is not; what nobody knows (caller.h) is there whole
// or not at all, and stays so. Every task carries its call in startedBy.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/state.h"
#include "sim/caller.h"
#include "sim/registrar.h"

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
  void register_definitions() { registrar_.register_definitions(); }
  // Makes again what was taken away and machines cannot do without.
  void mend();

  // Against what has been stored. `forgotten`: tasks that were there, had stopped and were expired.
  void check(const core::State& state, const std::set<std::string>& forgotten);

  std::int64_t acknowledged() const { return caller_.acknowledged(); }
  std::int64_t unknown() const { return caller_.unknown(); }
  std::int64_t tasks_placed() const { return tasks_placed_; }
  bool idle() const { return caller_.idle(); }

 private:
  struct Run {
    core::RunTask command;
    int sent = 0;
    int attempts = 0;                            // that nobody knows of, or that wait
    std::set<std::string> acknowledged;          // ids
    std::optional<std::set<std::string>> found;  // ids, when tasks of it were first seen
  };

  void run_task();
  void repeat_run_task();
  void send_run(const std::string& name);
  void start_task();
  void expect_tasks(core::Command command, const std::string& name);
  void tasks_answered(const std::string& name, const core::RunTaskReply& answer,
                      const core::State& state);
  void stop_task();
  void update_instance();
  void deregister_instance();
  void deregister(core::DeregisterInstance command);
  void tag();

  Env& env_;
  Plane& plane_;
  Caller caller_;
  Registrar registrar_;
  std::vector<std::string> instances_;
  std::map<std::string, Run> runs_;           // by startedBy
  std::vector<std::string> with_token_;       // startedBy
  std::map<std::string, std::string> tasks_;  // acknowledged id -> startedBy
  std::vector<std::string> task_ids_;         // to choose from
  std::set<std::string> stopped_;             // acknowledged StopTask
  std::int64_t calls_ = 0;
  std::int64_t tasks_placed_ = 0;
};

}  // namespace cotenant::sim
