#include "agent/pause_container.h"

#include <utility>

#include "agent/pause_image.h"

namespace cotenant::agent {

void add_pause_container(core::DesiredTask& task) {
  const bool shares = task.network_mode == core::NetworkMode::kAwsvpc ||
                      task.settings.pid_mode == core::NamespaceMode::kTask ||
                      task.settings.ipc_mode == core::NamespaceMode::kTask;
  if (!shares || task.containers.empty()) return;
  core::DesiredContainer pause;
  // Unique, and the same for every agent that ever runs this task.
  pause.id = task.task_id;
  pause.definition.name = kPauseName;
  pause.definition.image = pause_image_name();
  pause.definition.stop_timeout_s = 2;
  bool any_started = false;
  for (core::DesiredContainer& container : task.containers) {
    container.definition.life.depends_on.push_back({kPauseName, core::DependencyCondition::kStart});
    any_started = any_started || container.started;
  }
  pause.started = any_started;
  task.containers.insert(task.containers.begin(), std::move(pause));
}

}  // namespace cotenant::agent
