#include "mps/process_info.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

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
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid));
  std::string program;
  std::getline(file, program, '\0');
  return program.empty() ? "-" : program;
}

std::string pci_bus_id(const DeviceInfo& info) {
  return fmt::format("{:08X}:{:02X}:{:02X}.0", info.pci_domain, info.pci_bus, info.pci_device);
}

}  // namespace gpusim::mps
