// The region that an MPS server of the 470 and 535 drivers shares with its clients by name, in
// /dev/shm. Where client and server do not see the same /dev/shm, the client fails with 805
// (nvidia-container-toolkit issue 714).
#pragma once

#include <string>

namespace gpusim::mps {

class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory() { remove(); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Makes "/cuda.shm.<uid>.<pid in hex>.1". False with errno.
  bool create();
  void remove();
  const std::string& name() const { return name_; }  // "" when there is none

 private:
  std::string name_;
};

}  // namespace gpusim::mps
