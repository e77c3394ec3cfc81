#include "cli/installation.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/hash.h"
#include "codec/json.h"

namespace cotenant::cli {
namespace {

namespace fs = std::filesystem;
using codec::Json;

constexpr const char* kDefaultDataDir = "/var/lib/cotenant";
constexpr const char* kDefaultRunDir = "/run/cotenant";

std::string node_file(const std::string& data_dir) { return data_dir + "/node.json"; }

base::Status make_folder(const std::string& path, fs::perms permissions) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (!error && made) fs::permissions(path, permissions, error);
  if (!error) return {};
  return base::fail(base::ErrorCode::kIo,
                    fmt::format("{}: cannot be made: {}; choose another folder with --data-dir and "
                                "--run-dir, or run as root",
                                path, error.message()));
}

}  // namespace

std::string default_run_dir(const std::string& data_dir) {
  if (data_dir == kDefaultDataDir) return kDefaultRunDir;
  return fmt::format("{}-{}", kDefaultRunDir, base::digest_hex(data_dir).substr(0, 8));
}

std::string absolute_path(const std::string& path) {
  std::string absolute = fs::absolute(path).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

base::Status make_folders(const Installation& installation) {
  if (auto status = make_folder(installation.data_dir, fs::perms::owner_all); !status) return status;
  return make_folder(installation.run_dir, fs::perms::owner_all | fs::perms::group_read |
                                               fs::perms::group_exec | fs::perms::others_read |
                                               fs::perms::others_exec);
}

base::Status write_node_file(const Installation& installation) {
  Json json = Json::object();
  json.set("runDir", installation.run_dir)
      .set("dockerHost", installation.docker_host)
      .set("simulateGpus", installation.simulate_gpus)
      .set("nvmlLibrary", installation.nvml_library)
      .set("mpsControl", installation.mps_control)
      .set("cdiDir", installation.cdi_dir);
  const std::string path = node_file(installation.data_dir);
  std::ofstream file(path, std::ios::trunc);
  file << json.dump_pretty() << "\n";
  file.close();
  if (file) return {};
  return base::fail(base::ErrorCode::kIo, path + ": cannot be written");
}

base::Result<Installation> read_node_file(const std::string& data_dir) {
  const std::string path = node_file(data_dir);
  std::ifstream file(path);
  if (!file) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("{}: no cotenant was started with this data folder", path));
  }
  std::ostringstream text;
  text << file.rdbuf();
  auto json = Json::parse(text.str());
  if (json && !json->is_object()) json = base::fail(base::ErrorCode::kIo, "must be an object");
  if (!json) return base::fail(base::ErrorCode::kIo, path + ": " + json.error().message);
  Installation installation;
  installation.data_dir = data_dir;
  installation.run_dir = json->string_or("runDir", default_run_dir(data_dir));
  installation.docker_host = json->string_or("dockerHost", "");
  installation.simulate_gpus = json->string_or("simulateGpus", "");
  installation.nvml_library = json->string_or("nvmlLibrary", "");
  installation.mps_control = json->string_or("mpsControl", "");
  installation.cdi_dir = json->string_or("cdiDir", "");
  return installation;
}

}  // namespace cotenant::cli
