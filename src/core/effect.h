// What a command has touched: the shell stores the records, then lets the effects out.
#pragma once

#include <map>
#include <set>
#include <string>

#include "core/command.h"
#include "core/record_ref.h"

namespace cotenant::core {

struct Effects {
  std::set<RecordRef> changed_records;  // to be stored, or removed where State has it no more
  // The tasks whose desired state has changed, by the instance whose agent must hear of it.
  std::map<std::string, std::set<std::string>> notify_tasks;
  // Instances that are none any more: their agents are told to stop everything and to stay away.
  std::set<std::string> dismissed_instances;
};

struct Outcome {
  Reply reply;
  Effects effects;
};

}  // namespace cotenant::core
