// What the agent asks of an engine's images. Implemented by adapters/docker_images.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"

namespace cotenant::ports {

struct ImageInfo {
  std::string id;                         // "sha256:...", of the image's configuration
  std::vector<std::string> repo_digests;  // empty: it never was in a registry
  std::int64_t size_bytes = 0;
};

// What a registry is shown. Either name and password, or the identity token that a registry gave
// for them.
struct RegistryCredentials {
  std::string server;  // "registry.example:5000"
  std::string username;
  std::string password;
  std::string identity_token;
};

// Of the layers that this pull has to fetch, as far as they are known yet.
struct PullProgress {
  int layers_done = 0;
  int layers = 0;
  std::int64_t bytes_done = 0;
  std::int64_t bytes_total = 0;
};

struct PullRequest {
  std::string image;  // as in a task definition; without tag and digest: latest
  std::optional<RegistryCredentials> credentials;
  // Engines say something every moment while they pull; longer silence is a kTimeout.
  std::chrono::milliseconds inactivity_timeout = std::chrono::minutes(3);
};

// Blocking calls, any thread. Errors: kUnavailable (the engine does not answer), kTimeout,
// kNotFound (no such image: on the engine, or in its registry, or not for us; the engine does not
// tell which), kClient (a refusal that will not change), kIo (of pull(): any other trouble with the
// registry, worth another try), kProtocol.
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  // By name, "name@sha256:..." or id.
  virtual base::Result<ImageInfo> find(const std::string& image) = 0;
  // Requested stop: kUnavailable.
  virtual base::Status pull(const PullRequest& request,
                            const std::function<void(const PullProgress&)>& on_progress,
                            std::stop_token stop) = 0;
  // Takes the name (or id) away, and the image with its last name. Not forced: kConflict while a
  // container is made from it. Gone already: success.
  virtual base::Status remove(const std::string& image) = 0;
  // The ids of the images that containers, anybody's, running or not, are made from.
  virtual base::Result<std::set<std::string>> in_use() = 0;
};

}  // namespace cotenant::ports
