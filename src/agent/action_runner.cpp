#include "agent/action_runner.h"

#include <utility>

#include "agent/container_spec.h"
#include "agent/labels.h"
#include "agent/pause_container.h"
#include "agent/pause_image.h"
#include "base/log.h"

namespace cotenant::agent {

using base::fail;
using base::Status;

ActionRunner::ActionRunner(std::string instance_id, ports::ContainerRuntime& runtime,
                           ports::MpsControl& mps, ports::GpuWiring& wiring, ImageKeeper& images,
                           std::function<void(const std::string&)> on_pull)
    : instance_id_(std::move(instance_id)),
      runtime_(runtime),
      mps_(mps),
      wiring_(wiring),
      images_(images),
      on_pull_(std::move(on_pull)) {}

Status ActionRunner::run(const Action& action) {
  struct Runner {
    ActionRunner& self;
    Status operator()(const StartDaemon& a) { return self.mps_.start(a.gpu_uuid); }
    Status operator()(const ProbeDaemon& a) { return self.mps_.probe(a.gpu_uuid); }
    Status operator()(const StopDaemon& a) { return self.mps_.stop(a.gpu_uuid); }
    Status operator()(const PullImage& a) {
      // It comes with cotenant: create() imports it where it is not there.
      if (a.image == pause_image_name()) return {};
      return self.images_.ensure(
          a.image, [&] { self.on_pull_(a.image); }, self.stop_pulls_.get_token());
    }
    Status operator()(const CreateContainer& a) { return self.create(a); }
    Status operator()(const StartContainer& a) { return self.runtime_.start(a.runtime_id); }
    Status operator()(const StopContainer& a) {
      return self.runtime_.stop(a.runtime_id, a.timeout_s);
    }
    Status operator()(const RemoveContainer& a) { return self.remove(a); }
  };
  return std::visit(Runner{*this}, action.what);
}

Status ActionRunner::create(const CreateContainer& action) {
  const base::Result<ports::EngineInfo> info = engine();
  if (!info) return fail(info.error());
  base::Result<BuiltSpec> built =
      build_container_spec(action.plan, instance_id_, *info, wiring_, mps_);
  if (!built) return fail(built.error());
  for (const std::string& warning : built->warnings) base::log::warn("agent: {}", warning);
  base::Result<std::string> id = runtime_.create(built->spec);
  if (!id && id.error().code == base::ErrorCode::kNotFound && is_pause(action.plan.container)) {
    // Its image is ours, and not there on a new engine, or after a clean-up of images.
    const Status imported =
        runtime_.import_image(built->spec.image, pause_image_tar(), kPauseProgram);
    if (!imported) return imported;
    id = runtime_.create(built->spec);
  }
  if (!id) return fail(id.error());
  return {};
}

// The volumes that a task has for itself go with the last of its containers.
Status ActionRunner::remove(const RemoveContainer& action) {
  if (Status removed = runtime_.remove(action.runtime_id); !removed) return removed;
  if (Status swept = runtime_.remove_unused_volumes(kInstanceLabel, instance_id_); !swept) {
    base::log::warn("agent: a task's volumes stay until the next container is removed: {}",
                    swept.error().message);
  }
  return {};
}

base::Result<ports::EngineInfo> ActionRunner::engine() {
  {
    const std::lock_guard lock(mutex_);
    if (engine_) return *engine_;
  }
  base::Result<ports::EngineInfo> info = runtime_.info();
  if (!info) return info;
  const std::lock_guard lock(mutex_);
  engine_ = *info;
  return info;
}

void ActionRunner::forget_engine() {
  const std::lock_guard lock(mutex_);
  engine_.reset();
}

}  // namespace cotenant::agent
