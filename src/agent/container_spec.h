// Makes the engine's container from a task definition's. The platform's values win over the task
// definition's: labels, the MPS variables, the GPUs. Pure but for the wiring, which reads its CDI
// spec.
#pragma once

#include <string>
#include <vector>

#include "agent/action.h"
#include "base/result.h"
#include "ports/container_runtime.h"
#include "ports/gpu_wiring.h"
#include "ports/mps_control.h"

namespace cotenant::agent {

// Where a sharing container finds its daemon's `control`. Not the default /tmp/nvidia-mps, which
// CUDA probes whether asked or not (ECS moved its own daemon away from it for that).
inline constexpr const char* kContainerMpsDirectory = "/run/cotenant/mps";

struct BuiltSpec {
  ports::ContainerSpec spec;
  std::vector<std::string> warnings;
};

// "cotenant-<family>-<revision>-<container>-<12 hex>": tells people what it is; the id makes it
// unique, so that a create whose answer was lost cannot make a second container.
std::string engine_name(const std::string& family, std::int64_t revision,
                        const core::DesiredContainer& container);

// Everything that the containers of a task are made from, for one of them.
ContainerPlan plan_container(const core::DesiredTask& task,
                             const core::DesiredContainer& container);

// Errors: kClient, with the reason and what would help: the container cannot be made on this
// machine.
base::Result<BuiltSpec> build_container_spec(const ContainerPlan& plan,
                                             const std::string& instance_id,
                                             const ports::EngineInfo& engine,
                                             const ports::GpuWiring& wiring,
                                             const ports::MpsControl& mps);

}  // namespace cotenant::agent
