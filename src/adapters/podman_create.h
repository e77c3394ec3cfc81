// The body of Podman's own POST /libpod/containers/create. It is needed where a container gets its
// GPUs by CDI name: Podman's Docker-compatible creation leaves device requests and the runtime out
// without a word. Pure.
// Source: Podman's API reference, "Create a container" (SpecGenerator), 4.3 and newer.
#pragma once

#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "ports/container_runtime.h"

namespace cotenant::adapters {

// "Podman Engine" of GET /version.
inline constexpr const char* kPodmanName = "Podman Engine";
// The path's prefix: 4.0.0 is the oldest that Podman 4 and 5 speak.
inline constexpr const char* kLibpodPrefix = "/v4.0.0/libpod";

// Errors: kClient, naming what Podman has no counterpart for (links, some securityOptions).
base::Result<codec::Json> podman_create_body(const ports::ContainerSpec& spec);

// The bodies of POST /volumes/create for the volumes that must be there before, because a container's
// creation would make them without their driver and labels.
std::vector<codec::Json> podman_volume_bodies(const ports::ContainerSpec& spec);

}  // namespace cotenant::adapters
