// The Docker Engine API's documents, to and from the port's structs. Pure functions.
// Source: Docker Engine API reference, versions 1.41 to 1.51; Podman's compatible API answers
// alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "ports/container_runtime.h"

namespace cotenant::adapters {

// The oldest and newest API versions (minor number of 1.x) that this code was written for.
inline constexpr int kDockerApiMin = 41;  // Docker 20.10; Podman's compatible API
inline constexpr int kDockerApiMax = 51;  // Docker 28.3
// DeviceRequests with the driver "cdi" came with Docker 25.
inline constexpr int kDockerApiCdi = 44;

struct DockerVersion {
  std::string name;     // "Docker Engine", "Podman Engine"
  std::string version;  // "20.10.24"
  int api_minor = 0;    // the version to speak: 41 is 1.41
};

// From GET /version. Errors: kUnavailable for an engine that is too old or too new, kProtocol.
base::Result<DockerVersion> parse_docker_version(const codec::Json& body);

// From GET /info and GET /networks.
base::Result<ports::EngineInfo> parse_docker_info(const DockerVersion& version,
                                                  const codec::Json& info,
                                                  const codec::Json& networks);

// The body of POST /containers/create. Errors: kClient, naming the member of the spec.
base::Result<codec::Json> docker_create_body(const ports::ContainerSpec& spec, int api_minor);

// One element of GET /containers/json. It has no times, and the exit code only in a text.
base::Result<ports::ContainerState> parse_docker_list_entry(const codec::Json& entry);

// From GET /containers/{id}/json. `image_digest` is the image's id. A container whose start failed
// (State.Error; the engine leaves it `created` with a made-up exit code) is kStopped with `error`
// and without an exit code. Errors: kProtocol, naming the member.
base::Result<ports::ContainerState> parse_docker_inspect(const codec::Json& body);

// From GET /images/{id}/json: the manifest's digest in the registry that `image` was pulled from;
// nothing for an image that never was in a registry.
std::optional<std::string> docker_repo_digest(const codec::Json& body, std::string_view image);

// The value of the query parameter `filters` for containers that carry label == value.
std::string docker_label_filter(const std::string& label, const std::string& value);
std::string docker_volume_filter(const std::string& label,
                                 const std::string& value);  // unused ones
std::string docker_event_filter(const std::string& label, const std::string& value);

// Percent-encodes all but unreserved characters (RFC 3986), for paths and queries.
std::string percent_encode(std::string_view text);

}  // namespace cotenant::adapters
