// What the agent's logic asks its shell to do, and what came of it. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/desired.h"

namespace cotenant::agent {

// What a container is made from; container_spec.h makes it.
struct ContainerPlan {
  std::string task_id;
  std::string family;
  std::int64_t revision = 0;
  core::NetworkMode network_mode = core::NetworkMode::kBridge;
  core::DesiredContainer container;
  core::TaskSettings settings;
  std::map<std::string, std::string> engine_names;  // of the task's containers, by their names
};

struct StartDaemon {
  std::string gpu_uuid;
};
struct ProbeDaemon {
  std::string gpu_uuid;
};
struct StopDaemon {
  std::string gpu_uuid;
};
// Makes the image be on the engine, by the agent's pull policy.
struct PullImage {
  std::string image;
};
struct CreateContainer {
  ContainerPlan plan;
};
struct StartContainer {
  std::string container_id;  // ours; runtime_id is the engine's
  std::string runtime_id;
};
struct StopContainer {
  std::string container_id;
  std::string runtime_id;
  std::int64_t timeout_s = 0;
};
struct RemoveContainer {
  std::string container_id;
  std::string runtime_id;
};

struct Action {
  std::uint64_t id = 0;
  std::variant<StartDaemon, ProbeDaemon, StopDaemon, PullImage, CreateContainer, StartContainer,
               StopContainer, RemoveContainer>
      what;
  // Not to be begun later than this: it would go on after the logic has given it up.
  base::TimeMs start_by_ms = 0;
};

// The ports' error codes have the meaning that the ports give them. A container that cannot be
// wired or specified at all is kClient.
struct ActionResult {
  std::uint64_t action_id = 0;
  base::Status status;
};

// For log lines: "start container 0123456789ab".
std::string describe(const Action& action);

}  // namespace cotenant::agent
