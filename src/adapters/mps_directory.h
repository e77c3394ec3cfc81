// The folder of one GPU's MPS control daemon, <run dir>/mps/<short id>/:
//   pipe/   CUDA_MPS_PIPE_DIRECTORY: sockets and pid file, made by the daemon, gone when it stops
//   log/    CUDA_MPS_LOG_DIRECTORY: control.log and server.log, kept over stops, and startup.log
//   daemon  our record of who the daemon and its server are, so that a restarted agent finds them
//   again
//
// A value; it holds paths only and the disk is the truth. Any thread, but changes to one folder
// must be serialised by the caller (MpsDaemon's lock per GPU). Errors: kIo, naming the folder and
// the remedy.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/process_identity.h"
#include "base/result.h"

namespace cotenant::adapters {

using base::ProcessIdentity;

// The pipe directory's path goes into a unix socket address (sun_path has 108 bytes) together with
// the names of the sockets in it.
inline constexpr std::size_t kMpsPipePathChars = 75;
// A log above this is set aside as <name>.1 when the daemon starts.
inline constexpr std::int64_t kMpsLogBytes = std::int64_t{16} * 1024 * 1024;

struct MpsRecord {
  std::string gpu_uuid;
  ProcessIdentity daemon;
  pid_t server_pid = 0;  // 0: not known yet
  // Only for a server that is the daemon's child, so that nobody else is ever signalled for it.
  std::optional<ProcessIdentity> server;
};

std::string format_mps_record(const MpsRecord& record);
// Nothing when the text is not a whole record.
std::optional<MpsRecord> parse_mps_record(std::string_view text);

// "GPU-" and 8-4-4-4-12 hexadecimal digits.
bool is_gpu_uuid(std::string_view text);
// The folder's name for a UUID: attempt 0 gives its first 8 digits, each further one another 8
// digits from a hash of the whole, for GPUs whose first digits are the same.
std::string mps_short_id(std::string_view gpu_uuid, int attempt);

class MpsDirectory {
 public:
  explicit MpsDirectory(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string pipe() const { return path_ + "/pipe"; }
  std::string log() const { return path_ + "/log"; }
  std::string control_socket() const { return pipe() + "/control"; }

  // Makes the folders (0755: the MPS server and the clients run as other users) and makes sure that
  // everybody may pass through every folder above them.
  base::Status prepare() const;
  base::Status remove_pipe() const;

  std::optional<MpsRecord> read_record() const;
  base::Status write_record(const MpsRecord& record) const;
  void remove_record() const;

  // What the daemon wrote into nvidia-cuda-mps-control.pid.
  std::optional<pid_t> read_pid_file() const;
  // The last line of a file in log/, for error messages.
  std::string last_log_line(const std::string& name) const;

 private:
  std::string path_;
};

}  // namespace cotenant::adapters
