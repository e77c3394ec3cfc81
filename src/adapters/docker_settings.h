// The part of the Docker Engine API's documents that is about ports, storage, limits, health and names:
// from the port's structs into a create request, and back from an inspection. Pure functions.
// Source: Docker Engine API reference, versions 1.41 to 1.51.
#pragma once

#include <string>
#include <vector>

#include "codec/json.h"
#include "ports/container_runtime.h"

namespace cotenant::adapters {

// Sets members of the create request (`body`) and of its HostConfig (`host`).
void set_docker_settings(const ports::ContainerSpec& spec, codec::Json& body, codec::Json& host);

// From an inspection. Nothing and unknown where it says nothing.
std::vector<core::NetworkBinding> parse_docker_bindings(const codec::Json& inspection);
std::string parse_docker_address(const codec::Json& inspection);
core::HealthStatus parse_docker_health(const codec::Json& state);

}  // namespace cotenant::adapters
