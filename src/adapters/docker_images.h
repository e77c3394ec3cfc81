// The images of an engine that speaks the Docker Engine API. Any thread. Errors as the port says.
#pragma once

#include <memory>

#include "adapters/docker_client.h"
#include "ports/image_store.h"

namespace cotenant::adapters {

class DockerImages final : public ports::ImageStore {
 public:
  explicit DockerImages(std::shared_ptr<DockerClient> engine);

  base::Result<ports::ImageInfo> find(const std::string& image) override;
  base::Status pull(const ports::PullRequest& request,
                    const std::function<void(const ports::PullProgress&)>& on_progress,
                    std::stop_token stop) override;
  base::Status remove(const std::string& image) override;
  base::Result<std::set<std::string>> in_use() override;

 private:
  const std::shared_ptr<DockerClient> engine_;
};

}  // namespace cotenant::adapters
