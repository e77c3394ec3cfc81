// The images of the `process` runtime: it has none, and needs none. Every name is "there", so that
// nothing is ever pulled, kept or cleaned up. Any thread.
#pragma once

#include <set>
#include <string>

#include "ports/image_store.h"

namespace cotenant::adapters {

class ProcessImages final : public ports::ImageStore {
 public:
  base::Result<ports::ImageInfo> find(const std::string&) override {
    return ports::ImageInfo{"none", {}, 0};
  }
  base::Status pull(const ports::PullRequest&,
                    const std::function<void(const ports::PullProgress&)>&,
                    std::stop_token) override {
    return {};
  }
  base::Status remove(const std::string&) override { return {}; }
  base::Result<std::set<std::string>> in_use() override { return std::set<std::string>{}; }
};

}  // namespace cotenant::adapters
