// ports::MpsControl with NVIDIA's own programs: one `nvidia-cuda-mps-control -d -multiuser-server`
// per GPU, each in <run dir>/mps/<short id>/ and never on the default path, which the NVIDIA
// runtime mounts into every GPU container. See mps_directory.h for the folder and its record.
//
// Any thread; one lock per GPU, held for a whole call. The daemons are not owned: they outlive this
// object and the process, get their own session and none of our descriptors or environment, and are
// known again by the record (pid, start time, boot, command line). A daemon that runs in our folder
// but is not in the record was left by a start() that never came to its end; it is ended before a
// new start. Only processes whose identity matches are ever signalled.
//
// Errors: those of the port. A UUID of another shape and a folder that cannot be used are kIo.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "adapters/mps_directory.h"
#include "ports/mps_control.h"

namespace cotenant::adapters {

struct MpsDaemonOptions {
  std::string run_dir;
  std::string control_binary = "nvidia-cuda-mps-control";
  // On top of PATH and LD_LIBRARY_PATH, which are taken from our own environment. The CUDA
  // variables that this class sets win.
  std::map<std::string, std::string> environment;

  std::chrono::milliseconds console_timeout{3000};  // one command
  std::chrono::milliseconds launch_timeout{10000};  // until the console answers
  std::chrono::milliseconds server_timeout{30000};  // until the server is ACTIVE
  std::chrono::milliseconds stop_grace{3000};       // for each of quit, SIGTERM, SIGKILL
};

class MpsDaemon final : public ports::MpsControl {
 public:
  explicit MpsDaemon(MpsDaemonOptions options);
  ~MpsDaemon() override;

  // A server in FAULT is kUnavailable at once: it recovers only when its clients have gone. A start
  // that fails leaves nothing running; a daemon that ran before is left as it is.
  base::Status start(const std::string& gpu_uuid) override;
  base::Status probe(const std::string& gpu_uuid) override;
  // Also ends what a daemon that died left behind. Keeps the logs.
  base::Status stop(const std::string& gpu_uuid) override;
  std::vector<std::string> running() override;
  std::string control_socket(const std::string& gpu_uuid) const override;

 private:
  struct Gpu;

  Gpu& find(const std::string& gpu_uuid) const;
  std::string mps_folder() const { return options_.run_dir + "/mps"; }

  MpsDaemonOptions options_;
  std::vector<std::string> base_environment_;
  mutable std::mutex mutex_;  // guards gpus_
  mutable std::map<std::string, std::unique_ptr<Gpu>> gpus_;
};

}  // namespace cotenant::adapters
