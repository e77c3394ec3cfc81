#include "codec/gpu_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/limits.h"
#include "codec/invalid.h"
#include "core/container_override.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;

constexpr std::string_view kRequirementDoc =
    "https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_ResourceRequirement.html";
constexpr std::string_view kSharingDoc =
    "https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_SharingStrategy.html";
constexpr std::string_view kMpsDoc =
    "https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_NvidiaMpsAllocation.html";
constexpr std::string_view kGpuGuideDoc =
    "https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-gpu-specifying.html";

// Like codec::invalid, with the documentation's address.
tl::unexpected<base::Error> invalid_gpu(std::string_view path, std::string_view text) {
  return fail(with_gpu_documentation(invalid_error(path, text)));
}

bool is_fraction(std::string_view value) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t point = value.find('.');
  if (point == std::string_view::npos || point + 1 == value.size()) return false;
  return std::all_of(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(point), digit) &&
         std::all_of(value.begin() + static_cast<std::ptrdiff_t>(point) + 1, value.end(), digit);
}

base::Result<core::GpuRequest> decode_whole(std::string_view value, const std::string& path) {
  if (value == "ALL") return core::WholeGpus{0, true};
  if (is_fraction(value)) {
    return fail(with_gpu_documentation(
        {ErrorCode::kUnsupportedFeature,
         fmt::format(
             "{}: fractions of a GPU ('{}') are for hardware-partitioned GPUs, which cotenant "
             "does not offer yet; ask for a share with sharingStrategy.nvidiaMps.memory",
             path, value)}));
  }
  int count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || end != value.data() + value.size() || count < 1 ||
      count > base::limits::kWholeGpusMax) {
    return invalid_gpu(path,
                       fmt::format("'{}' is not a number of GPUs; give a whole number from 1 to {} "
                                   "or ALL, or share a GPU with sharingStrategy",
                                   value, base::limits::kWholeGpusMax));
  }
  return core::WholeGpus{count, false};
}

base::Result<core::GpuRequest> decode_shared(const Json& strategy, const std::string& path) {
  const Json* mps = strategy.find("nvidiaMps");
  if (mps == nullptr) {
    return invalid_gpu(path,
                       "must have exactly one member; give nvidiaMps {memory, maxComputePercent}");
  }
  const Json* memory = mps->find("memory");
  const std::string memory_path = path + ".nvidiaMps.memory";
  if (memory == nullptr) return invalid_gpu(memory_path, "is required: the GPU memory in MiB");
  if (memory->as_integer() < 1 || memory->as_integer() > base::limits::kGpuMemoryMibMax) {
    return invalid_gpu(
        memory_path, fmt::format("must be from 1 to {} MiB, not {}", base::limits::kGpuMemoryMibMax,
                                 memory->as_integer()));
  }
  core::SharedGpu shared;
  shared.memory_mib = memory->as_integer();
  if (const Json* percent = mps->find("maxComputePercent")) {
    if (percent->as_integer() < 1 || percent->as_integer() > 100) {
      return invalid_gpu(path + ".nvidiaMps.maxComputePercent",
                         fmt::format("must be from 1 to 100, not {}", percent->as_integer()));
    }
    shared.compute_percent = static_cast<int>(percent->as_integer());
  }
  return shared;
}

base::Result<core::GpuRequest> decode_requirement(const Json& requirement,
                                                  const std::string& path) {
  const std::string type = requirement.string_or("type", "");
  const Json* value = requirement.find("value");
  const Json* strategy = requirement.find("sharingStrategy");
  if (type != "GPU") {
    if (strategy != nullptr) {
      return invalid_gpu(
          path + ".sharingStrategy",
          fmt::format("is only for type GPU, not {}; leave it out or set type to GPU", type));
    }
    return fail(with_gpu_documentation(
        {ErrorCode::kUnsupportedFeature,
         fmt::format("{}.type: {} is not offered: cotenant places NVIDIA GPUs; use type GPU", path,
                     type)}));
  }
  if (value != nullptr && strategy != nullptr) {
    return invalid_gpu(path,
                       "has both value and sharingStrategy; give value for whole GPUs, or "
                       "sharingStrategy for a share of one, not both");
  }
  if (value != nullptr) return decode_whole(value->as_string(), path + ".value");
  if (strategy != nullptr) return decode_shared(*strategy, path + ".sharingStrategy");
  return invalid_gpu(path,
                     "has neither value nor sharingStrategy; give value for whole GPUs, or "
                     "sharingStrategy for a share of one");
}

bool contains(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// The platform sets these for a sharing container, so the values of a definition or an override are
// lost.
void add_environment_warnings(const core::GpuRequest& gpu,
                              const std::vector<core::EnvironmentVariable>& environment,
                              const std::string& path, std::vector<std::string>& warnings) {
  constexpr std::array<std::string_view, 3> kPlatformNames = {"CUDA_MPS_PIPE_DIRECTORY",
                                                              "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                                                              "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"};
  const auto* share = std::get_if<core::SharedGpu>(&gpu);
  if (share == nullptr) return;
  for (const core::EnvironmentVariable& variable : environment) {
    if (std::find(kPlatformNames.begin(), kPlatformNames.end(), variable.name) ==
        kPlatformNames.end()) {
      continue;
    }
    // Without a percentage of the definition's own, the user's stays: it can only narrow.
    if (variable.name == "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE" && !share->compute_percent) continue;
    warnings.push_back(
        fmt::format("{}: {} is set by cotenant for a container that shares a GPU; the value given "
                    "here is not used",
                    path, variable.name));
  }
}

std::vector<std::string> environment_warnings(const core::TaskDefinition& definition) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < definition.containers.size(); ++i) {
    const core::ContainerDefinition& container = definition.containers[i];
    add_environment_warnings(container.gpu, container.environment,
                             fmt::format("containerDefinitions[{}].environment", i), warnings);
  }
  return warnings;
}

}  // namespace

std::string_view gpu_documentation(std::string_view path) {
  const auto names = [&](std::string_view part) {
    return path.find(part) != std::string_view::npos;
  };
  if (names("nvidiaMps")) return kMpsDoc;
  if (names("sharingStrategy")) return kSharingDoc;
  if (names("resourceRequirements") && names(".value")) return kGpuGuideDoc;
  if (names("resourceRequirements")) return kRequirementDoc;
  return {};
}

base::Error with_gpu_documentation(base::Error error) {
  const std::string path = error.message.substr(0, error.message.find(": "));
  const std::string_view documentation = gpu_documentation(path);
  if (!documentation.empty()) error.message += fmt::format(" ({})", documentation);
  return error;
}

base::Result<core::GpuRequest> decode_gpu_request(const Json& requirements,
                                                  const std::string& path) {
  const Json::Array& list = requirements.as_array();
  if (list.empty()) return core::NoGpu{};
  if (list.size() > 1) {
    return invalid_gpu(path,
                       "a container takes at most one requirement: a share of exactly one GPU, or "
                       "whole GPUs by count; merge them into one");
  }
  return decode_requirement(list.front(), path + "[0]");
}

base::Result<std::vector<std::string>> check_task_gpu_rules(
    const core::TaskDefinition& definition, const std::vector<std::string>& compatibilities) {
  std::optional<std::size_t> shared;
  std::optional<std::size_t> whole;
  std::optional<std::size_t> all;
  std::size_t whole_containers = 0;
  for (std::size_t i = 0; i < definition.containers.size(); ++i) {
    const core::GpuRequest& request = definition.containers[i].gpu;
    if (std::holds_alternative<core::SharedGpu>(request) && !shared) shared = i;
    if (const auto* gpus = std::get_if<core::WholeGpus>(&request)) {
      if (!whole) whole = i;
      if (gpus->all && !all) all = i;
      ++whole_containers;
    }
  }
  const auto requirement_path = [](std::size_t container) {
    return fmt::format("containerDefinitions[{}].resourceRequirements[0]", container);
  };
  if (shared && whole) {
    return invalid_gpu(
        requirement_path(std::max(*shared, *whole)),
        fmt::format("container '{}' shares a GPU and container '{}' takes whole ones; all "
                    "containers of a task that ask for a GPU must use the same option, "
                    "sharingStrategy or value",
                    definition.containers[*shared].name, definition.containers[*whole].name));
  }
  if (all && whole_containers > 1) {
    return invalid_gpu(
        requirement_path(*all) + ".value",
        "ALL takes every GPU of the instance, so no other container of the task can have "
        "one; give counts instead");
  }
  if (!shared) return std::vector<std::string>{};
  for (const std::string_view launch : {"FARGATE", "EXTERNAL"}) {
    if (contains(compatibilities, launch)) {
      return invalid_gpu(requirement_path(*shared) + ".sharingStrategy",
                         fmt::format("is not possible with requiresCompatibilities {}; use EC2 or "
                                     "MANAGED_INSTANCES, or leave requiresCompatibilities out",
                                     launch));
    }
  }
  if (definition.network_mode == core::NetworkMode::kHost) {
    return invalid_gpu(requirement_path(*shared) + ".sharingStrategy",
                       "is not possible with networkMode host, from which a tenant would reach the "
                       "control plane; use bridge or none");
  }
  return environment_warnings(definition);
}

std::vector<std::string> override_environment_warnings(
    const core::TaskDefinition& definition, const std::vector<core::ContainerOverride>& overrides) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const core::ContainerDefinition* part = core::find_container(definition, overrides[i].name);
    if (part == nullptr) continue;
    add_environment_warnings(core::gpu_request(*part, overrides), overrides[i].environment,
                             fmt::format("overrides.containerOverrides[{}].environment", i),
                             warnings);
  }
  return warnings;
}

}  // namespace cotenant::codec
