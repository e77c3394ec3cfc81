// One installation of cotenant on this machine: its data folder, its run folder, and what it remembers of
// how it was started, so that `down` needs no flags but --data-dir.
//
// Files: <data dir>/cotenant.db (the store), <data dir>/agent-state.json and lock files (agent),
// <data dir>/node.json (this), <run dir>/<role>.pid, <run dir>/mps/, <run dir>/gpusim/.
#pragma once

#include <string>

#include "base/result.h"

namespace cotenant::cli {

struct Installation {
  std::string data_dir;  // absolute
  std::string run_dir;   // absolute
  std::string docker_host;
  std::string simulate_gpus;
  std::string nvml_library;
  std::string mps_control;
  std::string cdi_dir;
};

// --run-dir where given; else /run/cotenant for the default data folder and
// /run/cotenant-<8 hex of the data folder's path> for another, so that two installations do not meet.
std::string default_run_dir(const std::string& data_dir);

// A path as given, made absolute against the working folder.
std::string absolute_path(const std::string& path);

// Makes both folders (0700 and 0755: MPS clients of other users pass through the run folder). Errors: kIo.
base::Status make_folders(const Installation& installation);

// Errors: kIo; read: kNotFound when nothing was installed there.
base::Status write_node_file(const Installation& installation);
base::Result<Installation> read_node_file(const std::string& data_dir);

}  // namespace cotenant::cli
