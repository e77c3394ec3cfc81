// A container engine that speaks the Docker Engine API (Docker 20.10 or newer; Podman's compatible
// API for containers without a GPU from CDI), usually over its unix socket.
//
// Any thread; calls do not wait for each other. Errors as the port says. Every call has a time
// limit; the size of an answer is bounded by the client. Nothing is kept that the engine does not
// know: a new object finds the same containers. A start that fails returns the engine's text
// (kClient), and list() shows that container as stopped, with `error` and without an exit code,
// until it is removed. A container that the engine lists and cannot inspect is shown as the list
// has it. Source: Docker Engine API reference 1.41; time limits are the ECS agent's
// (dockerclient/timeout).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/docker_cache.h"
#include "adapters/docker_client.h"
#include "ports/container_runtime.h"
#include "ports/http.h"

namespace cotenant::adapters {

class DockerRuntime final : public ports::ContainerRuntime {
 public:
  explicit DockerRuntime(std::shared_ptr<DockerClient> engine);
  explicit DockerRuntime(std::shared_ptr<const ports::HttpClient> client);

  base::Result<ports::EngineInfo> info() override;
  base::Result<std::vector<ports::ContainerState>> list(const std::string& label,
                                                        const std::string& value) override;
  base::Result<std::string> create(const ports::ContainerSpec& spec) override;
  base::Status start(const std::string& id) override;
  base::Status stop(const std::string& id, std::int64_t timeout_s) override;
  base::Status remove(const std::string& id) override;
  base::Status import_image(const std::string& image, const std::string& tar,
                            const std::string& program) override;
  base::Status remove_unused_volumes(const std::string& label, const std::string& value) override;
  // Events from the call on are seen, also those before the connection is up.
  base::Status watch(const std::string& label, const std::string& value,
                     const std::function<void()>& on_change, std::stop_token stop) override;

 private:
  // After the engine was away, what was known of it may be wrong.
  void forget_what_is_old();
  base::Status make_podman_volumes(const ports::ContainerSpec& spec);
  base::Result<ports::ContainerState> inspect(const std::string& id);
  // The image's digest in its registry, else its id.
  std::string image_digest(const std::string& image_id, const std::string& image);

  const std::shared_ptr<DockerClient> engine_;
  DockerCache cache_;
  std::mutex mutex_;  // guards what follows
  std::uint64_t absences_ = 0;
  std::map<std::string, std::string> digests_;  // "<image id> <image>" -> digest
};

}  // namespace cotenant::adapters
