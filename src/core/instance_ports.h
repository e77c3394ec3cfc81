// The ports of one instance that its tasks hold: those that their definitions name, and those that
// the engine has chosen for them. A value; derived from the tasks, not stored.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/port_mapping.h"

namespace cotenant::core {

class InstancePorts {
 public:
  // Adds to what the task holds. A port may be held by several tasks for a moment: engines report
  // what they have chosen after the fact.
  void hold(const std::string& task_id, const std::vector<HostPort>& ports);
  void release(const std::string& task_id);

  bool taken(const HostPort& port) const { return holders_.contains(port); }
  // One of the tasks that hold it; empty when it is free.
  std::string holder(const HostPort& port) const;
  // Sorted.
  std::vector<int> taken(Protocol protocol) const;

 private:
  std::map<HostPort, std::set<std::string>> holders_;
};

}  // namespace cotenant::core
