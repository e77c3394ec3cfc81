#include "driver/cdi.h"

#include <fmt/format.h>

namespace gpusim {
namespace {

// Default directories of ld.so: Debian's multiarch folder, and the one of Fedora, Amazon Linux and
// the like. A library is mounted into both, so that dlopen("libcuda.so.1") finds it without
// LD_LIBRARY_PATH (which would displace the image's own) and without a hook that runs ldconfig.
#if defined(__aarch64__)
constexpr const char* kLibraryFolders[] = {"/usr/lib/aarch64-linux-gnu", "/usr/lib64"};
#else
constexpr const char* kLibraryFolders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
#endif
constexpr const char* kLibraries[] = {"libcuda.so.1", "libnvidia-ml.so.1"};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string mount(int indent, const std::string& host_path, const std::string& container_path) {
  return fmt::format(
      "{0:{1}}- hostPath: {2}\n{0:{1}}  containerPath: {3}\n"
      "{0:{1}}  options: [\"ro\", \"nosuid\", \"nodev\", \"bind\"]\n",
      "", indent, quoted(host_path), quoted(container_path));
}

std::string device_mount(const DeviceInfo& device, const std::string& folder) {
  const std::string path = fmt::format("/{}/nvidia{}", kDevicesFolder, device.minor);
  return mount(8, folder + path, kContainerDir + path);
}

std::string named_device(const std::string& name, const std::string& mounts) {
  return fmt::format("  - name: {}\n    containerEdits:\n      mounts:\n{}", quoted(name), mounts);
}

}  // namespace

std::string cdi_spec(const std::vector<DeviceInfo>& devices, const std::string& folder,
                     const std::string& library_folder) {
  std::string out =
      "# Written by gpusimd. The devices are simulated.\n"
      "cdiVersion: \"0.5.0\"\nkind: \"nvidia.com/gpu\"\ndevices:\n";
  std::string all_mounts;
  for (const DeviceInfo& device : devices) {
    const std::string mounts = device_mount(device, folder);
    out += named_device(fmt::format("{}", device.minor), mounts);
    out += named_device(device.uuid, mounts);
    all_mounts += mounts;
  }
  out += named_device("all", all_mounts);
  out += "containerEdits:\n  env:\n";
  out += fmt::format("    - {}\n", quoted(fmt::format("{}={}", kDirEnvironment, kContainerDir)));
  // As nvidia-ctk does: the devices are injected here, so the NVIDIA runtime shall inject none.
  out += "    - \"NVIDIA_VISIBLE_DEVICES=void\"\n  mounts:\n";
  // The socket by its folder: a mounted socket file would refuse after a restart of gpusimd.
  out += mount(4, fmt::format("{}/{}", folder, kSocketFolder),
               fmt::format("{}/{}", kContainerDir, kSocketFolder));
  for (const char* library : kLibraries) {
    for (const char* library_target : kLibraryFolders) {
      out += mount(4, fmt::format("{}/{}", library_folder, library),
                   fmt::format("{}/{}", library_target, library));
    }
  }
  return out;
}

}  // namespace gpusim
