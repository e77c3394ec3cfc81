// One installation of cotenant on this machine: its data folder, its run folder, and what each role
// remembers of how it was started, so that `down` needs no flags but --data-dir.
//
// Files: <data dir>/cotenant.db (the store), <data dir>/agent.json (the agent's identity), lock
// files beside both, <data dir>/node-<role>.json (this), <data dir>/credentials (the API's key pairs),
// <data dir>/agents.json (join tokens and agents' keys, as hashes), <data dir>/agent.key (this
// agent's), <run dir>/<role>.pid, <run dir>/api.sock (the API), <run dir>/mps/, <run dir>/gpusim/,
// <data dir>/processes/ (containers of the process runtime).
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace cotenant::cli {

enum class Role { kUp, kServer, kAgent };
inline constexpr Role kRoles[] = {Role::kUp, Role::kServer, Role::kAgent};
const char* role_name(Role role);  // "up", "server", "agent"

// The runtime without a container engine; the other is "docker".
inline constexpr const char* kProcessRuntime = "process";

struct Installation {
  std::string data_dir;  // absolute, like every path here
  std::string run_dir;
  std::string runtime = "docker";  // or kProcessRuntime
  std::string docker_host;         // never empty
  std::string simulate_gpus;
  std::string nvml_library;
  std::string mps_control;
  std::string cdi_dir;
};

// --run-dir where given; else /run/cotenant for the default data folder and /run/cotenant-<8 hex of
// the data folder's path> for another, so that two installations do not meet.
std::string default_run_dir(const std::string& data_dir);

// The option where given, else DOCKER_HOST, else Docker's default socket.
std::string resolve_docker_host(const std::string& option);

// A path as given, made absolute against the working folder.
std::string absolute_path(const std::string& path);
// The same for a program or a library: a bare name is looked up by the system and stays as it is.
std::string absolute_program(const std::string& name);

std::string credentials_path(const std::string& data_dir);
std::string agents_path(const std::string& data_dir);
std::string agent_key_path(const std::string& data_dir);
std::string processes_path(const std::string& data_dir);  // of the process runtime
std::string api_socket_path(const std::string& run_dir);
std::string pid_file_path(const Installation& installation, Role role);

// Makes both folders (0700 and 0755: MPS clients of other users pass through the run folder).
// Errors: kIo.
base::Status make_folders(const Installation& installation);

// Replaces the role's record as a whole. Errors: kIo.
base::Status write_node_file(const Installation& installation, Role role);
// Nothing when the role was never started there. Errors: kIo, naming the file and the remedy.
base::Result<std::optional<Installation>> read_node_file(const std::string& data_dir, Role role);
void remove_node_file(const std::string& data_dir, Role role);

}  // namespace cotenant::cli
