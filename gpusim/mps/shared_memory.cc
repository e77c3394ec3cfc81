#include "mps/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpusim::mps {

bool SharedMemory::create() {
  const std::string name = fmt::format("/cuda.shm.{:x}.{:x}.1", geteuid(), getpid());
  const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  fchmod(fd, 0666);
  close(fd);
  name_ = name;
  return true;
}

void SharedMemory::remove() {
  if (!name_.empty()) shm_unlink(name_.c_str());
  name_.clear();
}

}  // namespace gpusim::mps
