// Cuts the body of GET /events (one JSON object a line, in pieces of any size) into what changed.
// Owned by one thread. Never fails: what cannot be read counts as a change of an unknown container,
// because a needless look costs less than a missed change.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cotenant::adapters {

class DockerEvents {
 public:
  // The line of one event is far smaller; a longer one is skipped.
  static constexpr std::size_t kLineBytesMax = 1024 * 1024;

  // The ids of the containers that changed by the lines that `piece` completes, in order, an empty
  // id for one that could not be read. Events that change no state (exec, attach, ...) are left
  // out.
  std::vector<std::string> feed(std::string_view piece);

 private:
  std::string line_;
  bool skipping_ = false;  // inside a line that was too long
};

}  // namespace cotenant::adapters
