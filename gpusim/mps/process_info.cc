#include "mps/process_info.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "common/driver_client.h"

namespace gpusim::mps {

std::string pid_namespace(int32_t pid) {
  char target[64];
  const std::string path = fmt::format("/proc/{}/ns/pid", pid);
  const ssize_t size = readlink(path.c_str(), target, sizeof target - 1);
  if (size <= 0) return "-";
  const std::string text(target, static_cast<size_t>(size));  // pid:[4026531836]
  const size_t open = text.find('[');
  return open == std::string::npos ? "-" : text.substr(open + 1, text.size() - open - 2);
}

std::string command_of(int32_t pid) {
  constexpr size_t kMaxCommandLine = 1024;
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid));
  std::string line;
  for (char c; line.size() < kMaxCommandLine && file.get(c);) {
    line += c == '\0' ? ' ' : static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line.empty() ? "-" : line;
}

std::string pci_bus_id(const DeviceInfo& info) {
  return fmt::format("{:08X}:{:02X}:{:02X}.0", info.pci_domain, info.pci_bus, info.pci_device);
}

std::vector<DeviceInfo> ask_devices(const std::vector<std::string>& uuids) {
  DriverClient driver;
  if (driver.connect_to(driver_folder(), Role::kObserver) != Status::kOk) return {};
  std::vector<DeviceInfo> all;
  for (uint32_t i = 0; i < driver.device_count(); ++i) {
    DeviceInfo info = {};
    if (driver.get_device(i, &info) == Status::kOk) all.push_back(info);
  }
  if (uuids.empty()) return all;
  std::vector<DeviceInfo> out;
  for (const std::string& uuid : uuids) {
    for (const DeviceInfo& info : all) {
      if (uuid == info.uuid) out.push_back(info);
    }
  }
  return out;
}

}  // namespace gpusim::mps
