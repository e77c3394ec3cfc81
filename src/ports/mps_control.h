// One NVIDIA MPS control daemon per GPU. Implemented by adapters/mps_daemon.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cotenant::ports {

// Blocking calls, any thread; the calls for one GPU are serialised inside, because two console
// sessions at one daemon collide. Each has a time limit. Errors:
//   kUnavailable  the daemon is not there or refuses (a positive exit code of the console)
//   kTimeout      the daemon accepts and never answers: it is wedged
//   kIo           the daemon could not be started or its folder not be made; the message says why
class MpsControl {
 public:
  virtual ~MpsControl() = default;
  // Starts daemon and server for the GPU, or adopts the daemon that runs already (pid and start
  // time match). Idempotent. The daemon outlives this process.
  virtual base::Status start(const std::string& gpu_uuid) = 0;
  // Asks the daemon for its default thread percentage and the server's status: success means that a
  // new client would be served.
  virtual base::Status probe(const std::string& gpu_uuid) = 0;
  // Stops server and daemon and removes the pipe directory. No daemon: success.
  virtual base::Status stop(const std::string& gpu_uuid) = 0;
  // The GPUs that have a live daemon of ours, e.g. from before a restart of the agent, or a server that
  // a dead one left behind: such a GPU is no plain one until stop() or start() has cleared it.
  virtual std::vector<std::string> running() = 0;
  // The host path of the socket `control`, the only file of the pipe directory that a client gets.
  virtual std::string control_socket(const std::string& gpu_uuid) const = 0;
};

}  // namespace cotenant::ports
