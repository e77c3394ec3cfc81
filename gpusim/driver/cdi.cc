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
  const std::string path = fmt::format("/{}/{}", kDevicesFolder, device.device_file);
  return mount(8, folder + path, kContainerDir + path);
}

std::string named_device(const std::string& name, const std::string& mounts) {
  return fmt::format("  - name: {}\n    containerEdits:\n      mounts:\n{}", quoted(name), mounts);
}

std::string header_and_devices(const std::vector<DeviceInfo>& devices, const std::string& folder) {
  std::string out =
      "# Written by gpusimd. The devices are simulated.\n"
      "cdiVersion: \"0.5.0\"\nkind: \"nvidia.com/gpu\"\ndevices:\n";
  std::string all_mounts;
  for (const DeviceInfo& device : devices) {
    std::string mounts = device_mount(device, folder);
    std::string name = fmt::format("{}", device.minor);
    if (device.kind == DeviceKind::kMig) {
      // As nvidia-ctk names them; a MIG device needs its GPU's node too.
      name = fmt::format("{}:{}", device.parent, device.gpu_instance_id - 1);
      mounts = device_mount(devices[device.parent], folder) + mounts;
    }
    out += named_device(name, mounts);
    out += named_device(device.uuid, mounts);
    all_mounts += device_mount(device, folder);
  }
  out += named_device("all", all_mounts);
  out += "containerEdits:\n  env:\n";
  out += fmt::format("    - {}\n", quoted(fmt::format("{}={}", kDirEnvironment, kContainerDir)));
  // As nvidia-ctk does: the devices are injected here, so the NVIDIA runtime shall inject none.
  out += "    - \"NVIDIA_VISIBLE_DEVICES=void\"\n";
  return out;
}

// The socket by its folder: a mounted socket file would refuse after a restart of gpusimd.
std::string socket_mount(const std::string& folder) {
  return mount(4, fmt::format("{}/{}", folder, kSocketFolder),
               fmt::format("{}/{}", kContainerDir, kSocketFolder));
}

}  // namespace

std::string cdi_spec(const std::vector<DeviceInfo>& devices, const std::string& folder,
                     const std::string& library_folder) {
  std::string out = header_and_devices(devices, folder);
  out += "  mounts:\n" + socket_mount(folder);
  for (const char* library : kLibraries) {
    for (const char* library_target : kLibraryFolders) {
      out += mount(4, fmt::format("{}/{}", library_folder, library),
                   fmt::format("{}/{}", library_target, library));
    }
  }
  return out;
}

std::string cdi_spec_like_nvidia_ctk(const std::vector<DeviceInfo>& devices,
                                     const std::string& folder, const std::string& library_folder,
                                     const DriverInfo& driver) {
  const std::string target = kLibraryFolders[0];
  std::string out = header_and_devices(devices, folder);
  out += fmt::format("    - {}\n", quoted("NVIDIA_CTK_LIBCUDA_DIR=" + target));
  out += "  hooks:\n    - hookName: \"createContainer\"\n";
  out += fmt::format(
      "      path: {}\n      args: [\"gpusim\", \"nvidia-cdi-hook\", "
      "\"update-ldcache\", \"--folder\", {}]\n",
      quoted(library_folder + "/gpusim"), quoted(target));
  out += "  mounts:\n" + socket_mount(folder);
  for (const char* library : kLibraries) {
    const std::string name = std::string(library).substr(0, std::string(library).rfind('.'));
    out += mount(4, fmt::format("{}/{}", library_folder, library),
                 fmt::format("{}/{}.{}", target, name, driver.driver_version));
  }
  return out;
}

}  // namespace gpusim
