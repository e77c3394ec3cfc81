// The container that holds what a task's containers share: its network (networkMode awsvpc), its
// processes (pidMode task), its shared memory (ipcMode task). It is the agent's own: it starts before
// the others and stops after them, no API shows it, and its image comes with cotenant
// (pause_image.h). Pure. Source: the ECS agent's pause container.
#pragma once

#include "core/desired.h"

namespace cotenant::agent {

// No container of a task definition can have this name: '.' is not allowed in one.
inline constexpr const char* kPauseName = "internal.pause";

// Adds it to a task that needs one: first among its containers, each of which then depends on it.
void add_pause_container(core::DesiredTask& task);

inline bool is_pause(const core::DesiredContainer& container) {
  return container.definition.name == kPauseName;
}

}  // namespace cotenant::agent
