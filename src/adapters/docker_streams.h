// Logs of, and programs in, the containers of an engine that speaks the Docker Engine API. Any
// thread. Errors as the port says.
#pragma once

#include <memory>
#include <string>

#include "adapters/docker_client.h"
#include "ports/container_streams.h"

namespace cotenant::adapters {

class DockerStreams final : public ports::ContainerStreams {
 public:
  explicit DockerStreams(std::shared_ptr<DockerClient> engine);

  base::Status logs(const std::string& id, const ports::LogRequest& request,
                    const ports::OnOutput& on_output, std::stop_token stop) override;
  base::Result<std::unique_ptr<ports::ExecSession>> exec(
      const std::string& id, const ports::ExecRequest& request) override;

 private:
  // Whether the container has a terminal. Errors as of an inspect.
  base::Result<bool> has_terminal(const std::string& id);

  const std::shared_ptr<DockerClient> engine_;
};

}  // namespace cotenant::adapters
