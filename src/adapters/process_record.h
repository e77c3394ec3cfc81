// The files of one container of the `process` runtime, in a folder of its own:
//   config.json  what it is; written by create(), then never changed
//   lock         locked (F_OFD_SETLK) as long as its shim runs, and while it is being started
//   state, exit  the shim's word: it runs, it has ended (shim/records.h)
//   log, log.1   what it printed (shim/log_file.h)
// Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ports/container_runtime.h"

namespace cotenant::adapters {

struct ProcessUser {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

// As setrlimit(2) takes it; -1 is unlimited.
struct ProcessLimit {
  int resource = 0;
  std::int64_t soft = 0;
  std::int64_t hard = 0;
};

struct ProcessConfig {
  std::string name;
  std::string image;  // as the task definition has it; nothing is made of it
  std::map<std::string, std::string> labels;
  std::vector<std::string> program;  // with its arguments
  std::vector<ports::EnvironmentVariable> environment;
  std::string working_directory = "/";
  std::optional<ProcessUser> user;  // none: the agent's
  std::vector<ProcessLimit> limits;
  bool keep_stdin = false;
  std::int64_t log_bytes = 10 * 1024 * 1024;  // of one file
  std::int64_t log_files = 3;
  std::vector<core::NetworkBinding> bindings;
};

std::string encode_process_config(const ProcessConfig& config);
base::Result<ProcessConfig> decode_process_config(std::string_view text);

struct ProcessStateRecord {
  pid_t shim = 0;
  pid_t pid = 0;  // of the program; it leads its process group
  std::string boot_id;
  base::TimeMs started_at_ms = 0;
};

struct ProcessExitRecord {
  std::optional<int> code;  // none: it never ran
  std::string error;
  base::TimeMs finished_at_ms = 0;
};

// Docker's form: 64 hex digits. Nothing else is a container's folder.
bool is_process_id(std::string_view name);

// Nothing where there is no such file, or it makes no sense.
std::optional<ProcessStateRecord> read_process_state(const std::string& folder);
std::optional<ProcessExitRecord> read_process_exit(const std::string& folder);
base::Status write_process_exit(const std::string& folder, const ProcessExitRecord& record);

}  // namespace cotenant::adapters
