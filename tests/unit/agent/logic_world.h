// A machine for tests of AgentLogic: containers and daemons that do at once what an action says.
// Checks, at each effect, what must hold of any machine (see `violations`).
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_logic.h"
#include "agent/labels.h"

namespace cotenant::agent {

class LogicWorld {
 public:
  using Error = base::ErrorCode;
  struct Entry {
    ports::ContainerState state;
    ContainerPlan plan;
    int starts = 0;
    int created_at = 0;  // by `events`; or when it ended, to start again by its policy
  };

  std::map<std::string, Entry> entries;  // by runtime id
  std::set<std::string> daemons;
  std::set<std::string> images;
  std::map<std::string, base::Error> image_errors;  // what pulls of an image end with
  std::map<std::string, int> last_good_probe;       // GPU -> `events` when it succeeded
  std::vector<std::string> violations;
  base::TimeMs now_ms = 1'000'000;
  int events = 0;
  int started_again = 0;  // by restart policies
  bool probes_answer = true;
  Error probe_error = Error::kUnavailable;

  base::Status apply(const Action& action) {
    ++events;
    return std::visit([&](const auto& what) { return apply(what); }, action.what);
  }

  base::Status apply(const StartDaemon& a) {
    for (const auto& [id, entry] : entries) {
      if (running(entry) && has_gpu(entry, a.gpu_uuid) && is_whole(entry)) {
        violations.push_back("daemon started below a whole-GPU container on " + a.gpu_uuid);
      }
    }
    daemons.insert(a.gpu_uuid);
    return {};
  }
  base::Status apply(const ProbeDaemon& a) {
    if (!probes_answer) return base::fail(probe_error, "probe failed");
    if (!daemons.contains(a.gpu_uuid)) return base::fail(Error::kUnavailable, "no daemon");
    last_good_probe[a.gpu_uuid] = events;
    return {};
  }
  base::Status apply(const StopDaemon& a) {
    for (const auto& [id, entry] : entries) {
      if (running(entry) && has_gpu(entry, a.gpu_uuid) && !is_whole(entry)) {
        violations.push_back("daemon stopped below a sharing container on " + a.gpu_uuid);
      }
    }
    daemons.erase(a.gpu_uuid);
    return {};
  }
  base::Status apply(const PullImage& a) {
    if (const auto error = image_errors.find(a.image); error != image_errors.end()) {
      return base::fail(error->second);
    }
    images.insert(a.image);
    return {};
  }
  base::Status apply(const CreateContainer& a) {
    if (!images.contains(a.plan.container.definition.image)) {
      return base::fail(Error::kNotFound, "no such image");
    }
    const std::string& id = a.plan.container.id;
    for (const auto& [runtime_id, entry] : entries) {
      if (entry.plan.container.id == id) return base::fail(Error::kConflict, "name taken");
    }
    Entry entry;
    entry.plan = a.plan;
    entry.created_at = events;
    entry.state.id = fmt::format("rt{}-{}", events, id);
    entry.state.labels = {{kInstanceLabel, "i"},
                          {kTaskLabel, a.plan.task_id},
                          {kContainerLabel, id},
                          {kContainerNameLabel, a.plan.container.definition.name}};
    if (!std::holds_alternative<core::NoGpu>(a.plan.container.definition.gpu)) {
      entry.state.labels[kGpusLabel] =
          fmt::format("{}", fmt::join(a.plan.container.gpu_uuids, ","));
      entry.state.labels[kGpuModeLabel] = is_whole(entry) ? kGpuModeWhole : kGpuModeMps;
    }
    entries.emplace(entry.state.id, entry);
    return {};
  }
  base::Status apply(const StartContainer& a) {
    const auto found = entries.find(a.runtime_id);
    if (found == entries.end()) return base::fail(Error::kNotFound, "no such container");
    Entry& entry = found->second;
    if (running(entry)) return {};
    const bool again = restarts(entry.plan.container.definition, entry.state);
    const bool first = ever_ran.insert(a.container_id).second;
    if (++entry.starts > 1 ? !again : !first) {
      violations.push_back("container " + a.container_id + " ran twice");
    }
    if (entry.starts > 1) ++started_again;
    if (reported_stopped.contains(entry.plan.task_id)) {
      violations.push_back("container of stopped task " + entry.plan.task_id + " started");
    }
    for (const std::string& uuid : entry.plan.container.gpu_uuids) {
      if (is_whole(entry) && daemons.contains(uuid)) {
        violations.push_back("whole-GPU container started beside the daemon of " + uuid);
      }
      if (!is_whole(entry) && last_good_probe[uuid] <= entry.created_at) {
        violations.push_back("sharing container started before its gate: " + a.container_id);
      }
    }
    entry.state.phase = ports::ContainerPhase::kRunning;
    entry.state.exit_code.reset();
    entry.state.health = core::HealthStatus::kUnknown;
    entry.state.started_at_ms = now_ms;
    return {};
  }
  base::Status apply(const StopContainer& a) {
    const auto found = entries.find(a.runtime_id);
    if (found == entries.end()) return base::fail(Error::kNotFound, "no such container");
    if (running(found->second)) exit(found->second, 143);
    return {};
  }
  base::Status apply(const RemoveContainer& a) {
    const auto found = entries.find(a.runtime_id);
    if (found == entries.end()) return {};
    if (running(found->second)) return base::fail(Error::kClient, "it runs");
    entries.erase(found);
    return {};
  }

  void exit(Entry& entry, int code, bool oom_killed = false) {
    entry.state.phase = ports::ContainerPhase::kStopped;
    entry.state.exit_code = code;
    entry.state.oom_killed = oom_killed;
    entry.state.finished_at_ms = now_ms;
    entry.created_at = ++events;
  }

  // The container of that definition's name; null pointer where there is none.
  Entry* named(const std::string& name) {
    for (auto& [id, entry] : entries) {
      if (entry.plan.container.definition.name == name) return &entry;
    }
    return nullptr;
  }

  Snapshot snapshot() const {
    Snapshot seen;
    seen.containers.emplace();
    for (const auto& [id, entry] : entries) seen.containers->push_back(entry.state);
    seen.daemons.assign(daemons.begin(), daemons.end());
    return seen;
  }

  static bool running(const Entry& entry) {
    return entry.state.phase == ports::ContainerPhase::kRunning;
  }
  static bool is_whole(const Entry& entry) {
    return std::holds_alternative<core::WholeGpus>(entry.plan.container.definition.gpu);
  }
  static bool has_gpu(const Entry& entry, const std::string& uuid) {
    for (const std::string& own : entry.plan.container.gpu_uuids) {
      if (own == uuid) return true;
    }
    return false;
  }

  std::set<std::string> ever_ran;          // container ids
  std::set<std::string> reported_stopped;  // task ids of which every container was reported STOPPED
};

inline core::DesiredContainer plain(const std::string& name, bool essential = true) {
  core::DesiredContainer container;
  container.id = "id-" + name;
  container.definition.name = name;
  container.definition.image = "image";
  container.definition.essential = essential;
  return container;
}

inline core::DesiredContainer sharing(const std::string& name, const std::string& gpu,
                                      bool essential = true) {
  core::DesiredContainer container = plain(name, essential);
  container.definition.gpu = core::SharedGpu{1024, std::nullopt};
  container.gpu_uuids = {gpu};
  return container;
}

inline core::DesiredContainer whole(const std::string& name, std::vector<std::string> gpus) {
  core::DesiredContainer container = plain(name);
  container.definition.gpu = core::WholeGpus{static_cast<int>(gpus.size()), false};
  container.gpu_uuids = std::move(gpus);
  return container;
}

inline core::DesiredTask task(const std::string& id,
                              std::vector<core::DesiredContainer> containers) {
  core::DesiredTask desired;
  desired.task_id = id;
  desired.family = "family";
  desired.revision = 1;
  desired.containers = std::move(containers);
  return desired;
}

}  // namespace cotenant::agent
