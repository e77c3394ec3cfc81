// The images of this machine's engine, as tasks need them: pulls them by the agent's policy, and
// removes those that cotenant pulled and nobody has used for a while.
//
// Remembers what it pulled in one file in the data folder; a file that cannot be written or read
// costs only that some image is never cleaned up. Blocking calls, any thread; the store must
// outlive it. Whoever calls ensure() takes care that one image is not pulled twice at once.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "agent/image_policy.h"
#include "base/clock.h"
#include "base/result.h"
#include "ports/image_store.h"

namespace cotenant::agent {

struct ImageOptions {
  PullBehavior behavior = PullBehavior::kDefault;
  std::string registry_config;  // path of a docker config.json; empty: none
  ImageCleanupOptions cleanup;
};

class ImageKeeper {
 public:
  static constexpr const char* kFileName = "images.json";
  static constexpr std::size_t kPulledMax = 10'000;

  ImageKeeper(ImageOptions options, std::string data_dir, ports::ImageStore& store,
              const base::Clock& clock);

  // Makes the image be there. `on_pull` is called when a registry is asked. Errors: those of the
  // store; the last one where several were met.
  base::Status ensure(const std::string& image, const std::function<void()>& on_pull,
                      std::stop_token stop);

  // One cycle. `wanted`: images that tasks are to run from.
  void clean_up(const std::set<std::string>& wanted);

 private:
  base::Status pull(const std::string& image, const std::optional<ports::ImageInfo>& cached,
                    std::stop_token stop);
  void note_pulled(const std::string& image, const std::string& id, bool is_new);
  void note_used(const std::string& image);
  void load();
  void save();  // with mutex_ held

  const ImageOptions options_;
  const std::string path_;
  ports::ImageStore& store_;
  const base::Clock& clock_;
  std::mutex mutex_;                           // guards what follows, and the file
  std::map<std::string, PulledImage> pulled_;  // by name; one that lost it, by its id
  bool save_failed_ = false;
};

}  // namespace cotenant::agent
