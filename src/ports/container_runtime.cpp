#include "ports/container_runtime.h"

#include <utility>

namespace cotenant::ports {

void set_environment(ContainerSpec& spec, const std::string& name, std::string value) {
  std::erase_if(spec.environment, [&](const auto& variable) { return variable.name == name; });
  spec.environment.push_back({name, std::move(value)});
}

}  // namespace cotenant::ports
