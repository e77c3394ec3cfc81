// `gpusim cdi`, and the hook of the spec that is made as NVIDIA's tool makes it.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include "driver/cdi.h"
#include "tool/verbs.h"

namespace gpusim {
namespace {

namespace fs = std::filesystem;

std::string own_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().string();
}

// The container's root folder, from the state that the runtime gives a hook on standard input.
std::string container_root() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const auto bundle = YAML::Load(text)["bundle"].as<std::string>("");
  if (bundle.empty()) return "";
  const auto root = YAML::LoadFile(bundle + "/config.json")["root"]["path"].as<std::string>("");
  return root.starts_with('/') ? root : bundle + "/" + root;
}

}  // namespace

int run_cdi(Command* command) {
  std::vector<DeviceInfo> devices(command->driver.device_count());
  for (uint32_t i = 0; i < devices.size(); ++i) {
    const Status status = command->driver.get_device(i, &devices[i]);
    if (status != Status::kOk) return complain(status, "cdi");
  }
  std::error_code error;
  const std::string folder = fs::canonical(command->folder, error).string();
  if (!command->arguments.has("--like-nvidia-ctk")) {
    fmt::print("{}", cdi_spec(devices, folder, own_folder()));
    return kExitOk;
  }
  DriverInfo driver;
  if (const Status status = command->driver.get_driver(&driver); status != Status::kOk) {
    return complain(status, "cdi");
  }
  fmt::print("{}", cdi_spec_like_nvidia_ctk(devices, folder, own_folder(), driver));
  return kExitOk;
}

// nvidia-cdi-hook update-ldcache --folder F: runs ldconfig in the container's root, which makes the
// links by which libraries are looked for (libcuda.so.1) beside the versioned files.
int run_hook(Command* command) {
  const auto& words = command->arguments.words();
  if (words.size() != 1 || words[0] != "update-ldcache" || !command->arguments.has("--folder")) {
    return complain("nvidia-cdi-hook knows update-ldcache --folder FOLDER", kExitUsage);
  }
  std::string root;
  try {
    root = container_root();
  } catch (const YAML::Exception& bad) {
    return complain(fmt::format("the container's state cannot be read: {}", bad.what()));
  }
  if (root.empty()) return complain("the container's state names no bundle");
  const std::string folder = command->arguments.value("--folder");
  const pid_t child = fork();
  if (child == 0) {
    execl("/sbin/ldconfig", "/sbin/ldconfig", "-r", root.c_str(), folder.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    return complain("ldconfig failed");
  }
  return kExitOk;
}

}  // namespace gpusim
