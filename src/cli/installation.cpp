#include "cli/installation.h"

#include <fmt/format.h>

#include <cstdlib>
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
constexpr const char* kDefaultDockerHost = "unix:///var/run/docker.sock";

std::string node_file(const std::string& data_dir, Role role) {
  return fmt::format("{}/node-{}.json", data_dir, role_name(role));
}

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

const char* role_name(Role role) {
  switch (role) {
    case Role::kUp:
      return "up";
    case Role::kServer:
      return "server";
    case Role::kAgent:
      return "agent";
  }
  return "";
}

std::string default_run_dir(const std::string& data_dir) {
  if (data_dir == kDefaultDataDir) return kDefaultRunDir;
  return fmt::format("{}-{}", kDefaultRunDir, base::digest_hex(data_dir).substr(0, 8));
}

std::string resolve_docker_host(const std::string& option) {
  if (!option.empty()) return option;
  const char* from_environment = std::getenv("DOCKER_HOST");
  const bool set = from_environment != nullptr && *from_environment != '\0';
  return set ? from_environment : kDefaultDockerHost;
}

std::string absolute_path(const std::string& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  if (error) absolute = path;
  std::string text = absolute.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string absolute_program(const std::string& name) {
  return name.find('/') == std::string::npos ? name : absolute_path(name);
}

std::string credentials_path(const std::string& data_dir) {
  return data_dir + "/credentials";
}

std::string agents_path(const std::string& data_dir) {
  return data_dir + "/agents.json";
}

std::string agent_key_path(const std::string& data_dir) {
  return data_dir + "/agent.key";
}

std::string processes_path(const std::string& data_dir) {
  return data_dir + "/processes";
}

std::string api_socket_path(const std::string& run_dir) {
  return run_dir + "/api.sock";
}

std::string pid_file_path(const Installation& installation, Role role) {
  return fmt::format("{}/{}.pid", installation.run_dir, role_name(role));
}

base::Status make_folders(const Installation& installation) {
  if (auto status = make_folder(installation.data_dir, fs::perms::owner_all); !status)
    return status;
  return make_folder(installation.run_dir, fs::perms::owner_all | fs::perms::group_read |
                                               fs::perms::group_exec | fs::perms::others_read |
                                               fs::perms::others_exec);
}

base::Status write_node_file(const Installation& installation, Role role) {
  Json json = Json::object();
  json.set("runDir", installation.run_dir)
      .set("runtime", installation.runtime)
      .set("dockerHost", installation.docker_host)
      .set("simulateGpus", installation.simulate_gpus)
      .set("nvmlLibrary", installation.nvml_library)
      .set("mpsControl", installation.mps_control)
      .set("cdiDir", installation.cdi_dir);
  const std::string path = node_file(installation.data_dir, role);
  const std::string aside = path + ".new";
  std::ofstream file(aside, std::ios::trunc);
  file << json.dump_pretty() << "\n";
  file.close();
  std::error_code error;
  if (file) fs::rename(aside, path, error);
  if (file && !error) return {};
  return base::fail(
      base::ErrorCode::kIo,
      fmt::format("{}: cannot be written; is the disk full or read-only? Choose another "
                  "folder with --data-dir",
                  path));
}

base::Result<std::optional<Installation>> read_node_file(const std::string& data_dir, Role role) {
  const std::string path = node_file(data_dir, role);
  std::error_code error;
  const bool exists = fs::exists(path, error);
  if (!exists && !error) return std::nullopt;
  std::ifstream file(path);
  std::ostringstream text;
  if (error || !file || !(text << file.rdbuf())) {
    return base::fail(base::ErrorCode::kIo,
                      path + ": cannot be read; run as the user who ran `up`");
  }
  auto json = Json::parse(text.str());
  const std::string run_dir = json ? json->string_or("runDir", "") : "";
  if (run_dir.empty()) {
    return base::fail(
        base::ErrorCode::kIo,
        fmt::format("{}: is damaged; start cotenant again with the same options, which "
                    "writes it anew",
                    path));
  }
  Installation installation;
  installation.data_dir = data_dir;
  installation.run_dir = run_dir;
  installation.runtime = json->string_or("runtime", "docker");
  installation.docker_host = resolve_docker_host(json->string_or("dockerHost", ""));
  installation.simulate_gpus = json->string_or("simulateGpus", "");
  installation.nvml_library = json->string_or("nvmlLibrary", "");
  installation.mps_control = json->string_or("mpsControl", "");
  installation.cdi_dir = json->string_or("cdiDir", "");
  return installation;
}

void remove_node_file(const std::string& data_dir, Role role) {
  std::error_code ignored;
  fs::remove(node_file(data_dir, role), ignored);
}

}  // namespace cotenant::cli
