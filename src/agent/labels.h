// The labels that every container of ours carries. They are all that an agent which has just
// started knows of containers that nobody desires any more. Users cannot set labels below
// kLabelPrefix.
#pragma once

#include <string>

#include "ports/container_runtime.h"

namespace cotenant::agent {

inline constexpr const char* kLabelPrefix = "cotenant.";
inline constexpr const char* kInstanceLabel = "cotenant.instance";
inline constexpr const char* kTaskLabel = "cotenant.task";
inline constexpr const char* kContainerLabel = "cotenant.container";
inline constexpr const char* kContainerNameLabel = "cotenant.container-name";
// The container's GPUs, separated by commas; absent without GPUs.
inline constexpr const char* kGpusLabel = "cotenant.gpus";
// "mps" or "whole", with kGpusLabel.
inline constexpr const char* kGpuModeLabel = "cotenant.gpu-mode";
inline constexpr const char* kGpuModeMps = "mps";
inline constexpr const char* kGpuModeWhole = "whole";

// Empty where the container does not carry it.
inline std::string label_of(const ports::ContainerState& state, const char* name) {
  const auto found = state.labels.find(name);
  return found == state.labels.end() ? std::string() : found->second;
}

}  // namespace cotenant::agent
