// What an engine says while it pulls an image: the body of POST /images/create (one JSON object a
// line, in pieces of any size), and its refusals. Owned by one thread; pure.
// Source: Docker Engine API reference, "Create an image"; the texts are Docker's and Podman's own.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ports/image_store.h"

namespace cotenant::adapters {

class DockerPull {
 public:
  // A line is far smaller, an image has some dozens of layers; what is beyond is skipped.
  static constexpr std::size_t kLineBytesMax = 64 * 1024;
  static constexpr std::size_t kLayersMax = 4096;

  // True when the progress has changed.
  bool feed(std::string_view piece);

  const ports::PullProgress& progress() const { return progress_; }
  // The engine's own text when the pull has failed: the answer's status says nothing of it.
  const std::optional<std::string>& error() const { return error_; }
  // The last line came: an answer without it broke off.
  bool complete() const { return complete_; }

 private:
  struct Layer {
    std::int64_t bytes_done = 0;
    std::int64_t bytes_total = 0;
    bool done = false;
  };

  void read_line(std::string_view line);
  void sum_up();

  std::string line_;
  bool skipping_ = false;
  std::map<std::string, Layer> layers_;
  ports::PullProgress progress_;
  std::optional<std::string> error_;
  bool complete_ = false;
};

// What a refusal of a pull means: kNotFound (no such image for us), kClient (a refusal that will
// not change), kIo (all else: a registry that is away, slow, overloaded or broken; try again).
base::ErrorCode classify_pull_error(std::string_view text);

// The name and the tag that POST /images/create wants: without a tag it would fetch every one.
struct PullTarget {
  std::string name;  // with a digest: all of it
  std::string tag;   // empty with a digest
};
PullTarget pull_target(std::string_view image);

// The value of the header X-Registry-Auth.
std::string registry_auth_header(const ports::RegistryCredentials& credentials);

}  // namespace cotenant::adapters
