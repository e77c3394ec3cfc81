#include "agent/action.h"

#include <fmt/format.h>

namespace cotenant::agent {
namespace {

struct Describer {
  std::string operator()(const StartDaemon& a) const {
    return "start the MPS daemon of " + a.gpu_uuid;
  }
  std::string operator()(const ProbeDaemon& a) const {
    return "probe the MPS daemon of " + a.gpu_uuid;
  }
  std::string operator()(const StopDaemon& a) const {
    return "stop the MPS daemon of " + a.gpu_uuid;
  }
  std::string operator()(const PullImage& a) const { return "have image " + a.image; }
  std::string operator()(const CreateContainer& a) const {
    return fmt::format("create container {} of task {}", a.plan.container.definition.name,
                       a.plan.task_id);
  }
  std::string operator()(const StartContainer& a) const {
    return "start container " + a.runtime_id.substr(0, 12);
  }
  std::string operator()(const StopContainer& a) const {
    return fmt::format("stop container {} within {} s", a.runtime_id.substr(0, 12), a.timeout_s);
  }
  std::string operator()(const RemoveContainer& a) const {
    return "remove container " + a.runtime_id.substr(0, 12);
  }
};

}  // namespace

std::string describe(const Action& action) {
  return std::visit(Describer{}, action.what);
}

}  // namespace cotenant::agent
