#include "agent/container_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/container_settings.h"
#include "agent/host_process_rules.h"
#include "agent/labels.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using base::fail;
using core::ContainerDefinition;
using core::SharedGpu;
using core::WholeGpus;

// Engines set no limit that we know of; this keeps listings readable.
constexpr std::size_t kNamePartChars = 60;

std::map<std::string, std::string> labels_for(const ContainerPlan& plan,
                                              const std::string& instance_id) {
  std::map<std::string, std::string> labels = plan.container.definition.docker_labels;
  std::erase_if(labels, [](const auto& label) { return label.first.starts_with(kLabelPrefix); });
  labels[kInstanceLabel] = instance_id;
  labels[kTaskLabel] = plan.task_id;
  labels[kContainerLabel] = plan.container.id;
  labels[kContainerNameLabel] = plan.container.definition.name;
  if (!std::holds_alternative<core::NoGpu>(plan.container.definition.gpu)) {
    labels[kGpusLabel] = fmt::format("{}", fmt::join(plan.container.gpu_uuids, ","));
    labels[kGpuModeLabel] = std::holds_alternative<SharedGpu>(plan.container.definition.gpu)
                                ? kGpuModeMps
                                : kGpuModeWhole;
  }
  return labels;
}

// The control plane chooses the GPUs; a container whose GPUs do not fit what it asked for would run
// with other GPUs than it reserved.
base::Status check_gpus(const ContainerPlan& plan) {
  const std::size_t got = plan.container.gpu_uuids.size();
  const core::GpuRequest& request = plan.container.definition.gpu;
  const auto wrong = [&](std::string_view want) {
    return fail(ErrorCode::kClient,
                fmt::format("container '{}': needs {}, but {} GPU(s) were assigned",
                            plan.container.definition.name, want, got));
  };
  if (std::holds_alternative<SharedGpu>(request) && got != 1) return wrong("exactly one GPU");
  if (const auto* whole = std::get_if<WholeGpus>(&request)) {
    if (whole->all && got == 0) return wrong("all GPUs of the instance");
    if (!whole->all && got != static_cast<std::size_t>(whole->count)) {
      return wrong(fmt::format("{} whole GPU(s)", whole->count));
    }
  }
  if (std::holds_alternative<core::NoGpu>(request) && got != 0) return wrong("no GPU");
  return {};
}

void add_mps(const ContainerPlan& plan, const SharedGpu& share, const ports::MpsControl& mps,
             ports::ContainerSpec& spec) {
  set_environment(spec, "CUDA_MPS_PIPE_DIRECTORY", kContainerMpsDirectory);
  // The container sees its one GPU as device 0, whatever its index on the machine.
  set_environment(spec, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", fmt::format("0={}M", share.memory_mib));
  // When not asked for, a value of the user's own stays: it can only narrow.
  if (share.compute_percent) {
    set_environment(spec, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                    fmt::format("{}", *share.compute_percent));
  }
  // Only this file: `control_privileged` would let a container lift limits or stop the daemon.
  // Read-only: connecting works all the same, but a tenant cannot change the socket's mode and so
  // lock the others out, who would then run without limits.
  spec.mounts.push_back({mps.control_socket(plan.container.gpu_uuids.front()),
                         std::string(kContainerMpsDirectory) + "/control", true});
}

}  // namespace

std::string engine_name(const std::string& family, std::int64_t revision,
                        const core::DesiredContainer& container) {
  return fmt::format("cotenant-{}-{}-{}-{}", family.substr(0, kNamePartChars), revision,
                     container.definition.name.substr(0, kNamePartChars),
                     container.id.substr(0, 12));
}

ContainerPlan plan_container(const core::DesiredTask& task,
                             const core::DesiredContainer& container) {
  ContainerPlan plan{task.task_id,  task.family, task.revision, task.network_mode, container,
                     task.settings, {}};
  for (const core::DesiredContainer& part : task.containers) {
    plan.engine_names[part.definition.name] = engine_name(task.family, task.revision, part);
  }
  return plan;
}

base::Result<BuiltSpec> build_container_spec(const ContainerPlan& plan,
                                             const std::string& instance_id,
                                             const ports::EngineInfo& engine,
                                             const ports::GpuWiring& wiring,
                                             const ports::MpsControl& mps) {
  if (base::Status ok = check_gpus(plan); !ok) return fail(ok.error());
  const ContainerDefinition& definition = plan.container.definition;
  BuiltSpec built;
  ports::ContainerSpec& spec = built.spec;
  spec.name = engine_name(plan.family, plan.revision, plan.container);
  spec.image = definition.image;
  spec.entry_point = definition.entry_point;
  spec.command = definition.command;
  for (const core::EnvironmentVariable& variable : definition.environment) {
    set_environment(spec, variable.name, variable.value);
  }
  spec.labels = labels_for(plan, instance_id);
  spec.working_directory = definition.working_directory;
  spec.cpu_units = definition.cpu_units;
  spec.memory_mib = definition.memory_mib.value_or(0);
  spec.memory_reservation_mib = definition.memory_reservation_mib.value_or(0);
  spec.network_mode = plan.network_mode;
  if (!engine.has_isolation) {
    if (base::Status fits = fit_to_host(plan, built.warnings); !fits) return fail(fits.error());
  } else if (spec.network_mode == ports::NetworkMode::kBridge && !engine.has_bridge) {
    spec.network_mode = ports::NetworkMode::kNone;
    built.warnings.push_back(
        fmt::format("container '{}' of {}:{} asks for networkMode bridge, which this engine does "
                    "not have: it gets none",
                    definition.name, plan.family, plan.revision));
  }

  const bool ports_are_there = engine.has_bridge || !engine.has_isolation;
  if (base::Status set = add_settings(plan, instance_id, ports_are_there, built); !set)
    return fail(set.error());
  if (!engine.has_isolation) spec.network_mode = ports::NetworkMode::kHost;
  if (const auto* share = std::get_if<SharedGpu>(&definition.gpu)) add_mps(plan, *share, mps, spec);
  if (base::Status wired = wiring.wire(engine, plan.container.gpu_uuids, spec); !wired) {
    return fail(ErrorCode::kClient, wired.error().message);
  }
  return built;
}

}  // namespace cotenant::agent
