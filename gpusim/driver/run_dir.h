// gpusimd's folder:
//   gpusimd.lock        held by flock while a gpusimd serves the folder
//   gpusimd.pid         there while it accepts connections: the ready signal
//   socket/gpusimd.sock 0666
//   devices/nvidia<N>   text with the UUID; stands for /dev/nvidia<N>
//   cdi/nvidia.yaml     the CDI spec
//   kernel.log          what the kernel would log: one line for each Xid; the newest MiB or so
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/protocol.h"

namespace gpusim {

class RunDir {
 public:
  // Makes the folder, takes the lock, clears what a dead predecessor left. Else a text why not.
  static std::optional<std::string> open(const std::string& folder, RunDir* out);

  RunDir() = default;
  ~RunDir();
  RunDir(const RunDir&) = delete;
  RunDir& operator=(const RunDir&) = delete;

  const std::string& path() const { return path_; }  // absolute, without symbolic links
  std::string socket_folder() const;

  // Devices and CDI spec. A text why not, if so.
  std::optional<std::string> publish_devices(const std::vector<DeviceInfo>& devices,
                                             const std::string& library_folder);
  std::optional<std::string> publish_ready();
  // A line that cannot be written is lost, as with a kernel log.
  void append_kernel_log(const std::string& line);
  // Removes socket, pid file, device files and CDI spec. The lock file stays: removing it would let
  // two daemons each lock their own.
  void clear();

 private:
  std::string path_;
  int lock_fd_ = -1;
};

}  // namespace gpusim
