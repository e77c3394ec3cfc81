#include "tool/smi.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "common/text.h"
#include "tool/verbs.h"

namespace gpusim {
namespace {

const char* mode_name(ComputeMode mode) {
  switch (mode) {
    case ComputeMode::kDefault:
      return "Default";
    case ComputeMode::kExclusiveThread:
      return "E. Thread";
    case ComputeMode::kProhibited:
      return "Prohibited";
    case ComputeMode::kExclusiveProcess:
      return "E. Process";
  }
  return "?";
}

// As nvidia-smi types them: the MPS server is C, its clients are M+C.
const char* kind_name(ProcessKind kind) {
  return kind == ProcessKind::kMpsClient ? "M+C" : "C";
}

std::string command_of(int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid));
  std::string program;
  std::getline(file, program, '\0');
  return program.empty() ? "-" : program;
}

Status list_processes(DriverClient* client, uint32_t device, std::vector<ProcessEntry>* rows) {
  uint64_t total = 0;
  do {
    Request request = make_request(Op::kListProcesses, device);
    request.arg = rows->size();
    Reply reply;
    const Status status = client->call(&request, &reply);
    if (status != Status::kOk) return status;
    total = reply.value;
    if (reply.count == 0) break;
    rows->insert(rows->end(), reply.processes, reply.processes + reply.count);
  } while (rows->size() < total);
  return Status::kOk;
}

const char* health_name(const DeviceState& state) {
  switch (state.health) {
    case DeviceHealth::kGood:
      return mode_name(state.compute_mode);
    case DeviceHealth::kLost:
      return "GPU is lost";
    case DeviceHealth::kResetRequired:
      return "Reset required";
  }
  return "?";
}

// In the table's order: a GPU, then what it is divided into.
std::string show_index(const DeviceInfo& info, uint32_t index) {
  return info.kind == DeviceKind::kMig ? fmt::format("{}:{}", info.parent, info.gpu_instance_id - 1)
                                       : fmt::format("{}", index);
}

// The end of a long name says more than its beginning.
std::string shortened(const std::string& name, const std::string& suffix, size_t width) {
  if (name.size() + suffix.size() <= width) return name + suffix;
  return "..." + name.substr(name.size() + suffix.size() + 3 - width) + suffix;
}

// nvidia-smi's measures, from its releases of 2024 on.
constexpr size_t kLeft = 41;
constexpr size_t kMiddle = 24;
constexpr size_t kRight = 22;
constexpr size_t kWidth = kLeft + kMiddle + kRight + 2;

std::string boxed(const std::string& text) {
  return fmt::format("| {:<{}} |\n", text, kWidth - 2);
}

std::string cells(const std::string& left, const std::string& middle, const std::string& right) {
  return fmt::format("| {:<{}} | {:<{}} | {:<{}} |\n", left, kLeft - 2, middle, kMiddle - 2, right,
                     kRight - 2);
}

const char* mig_mode(const DeviceInfo& info) {
  if (info.kind != DeviceKind::kGpu || info.mig_capable == 0) return "N/A";
  return info.mig_enabled != 0 ? "Enabled" : "Disabled";
}

}  // namespace

Status smi_table(DriverClient* client, int only, std::string* out) {
  DriverInfo driver;
  if (const Status status = client->get_driver(&driver); status != Status::kOk) return status;
  const std::string wide = "+" + std::string(kWidth, '-') + "+\n";
  const std::string middle =
      fmt::format("|{0:->{1}}+{0:->{2}}+{0:->{3}}|\n", "", kLeft, kMiddle, kRight);
  const std::string bottom =
      fmt::format("+{0:->{1}}+{0:->{2}}+{0:->{3}}+\n", "", kLeft, kMiddle, kRight);
  *out = wide + boxed(fmt::format("GPUSIM-SMI {:<20} Driver Version: {:<20} CUDA Version: {}.{}",
                                  "(simulated)", driver.driver_version, driver.cuda_version / 1000,
                                  driver.cuda_version % 1000 / 10));
  *out += middle;
  *out += cells("GPU  Name                 Persistence-M", "Bus-Id          Disp.A",
                "Volatile Uncorr. ECC");
  *out += cells("Fan  Temp   Perf          Pwr:Usage/Cap", "          Memory-Usage",
                "GPU-Util  Compute M.");
  *out += cells("", "", "              MIG M.");
  *out += fmt::format("|{0:=>{1}}+{0:=>{2}}+{0:=>{3}}|\n", "", kLeft, kMiddle, kRight);
  std::string processes;
  for (uint32_t index = 0; index < client->device_count(); ++index) {
    if (only >= 0 && static_cast<uint32_t>(only) != index) continue;
    DeviceInfo info;
    DeviceState state;
    Status status = client->get_device(index, &info);
    if (status == Status::kOk) status = client->get_state(index, &state);
    std::vector<ProcessEntry> rows;
    if (status == Status::kOk) status = list_processes(client, index, &rows);
    if (status != Status::kOk) return status;
    const std::string name = show_index(info, index);
    *out += cells(
        fmt::format("{:>3}  {:<29.29} Off", name, info.name),
        fmt::format("  {:08X}:{:02X}:{:02X}.0 Off", info.pci_domain, info.pci_bus, info.pci_device),
        fmt::format("{:>20}", state.ecc_uncorrected));
    *out +=
        cells("N/A  N/A    N/A             N/A /   N/A",
              fmt::format("{:>7}MiB / {:>6}MiB", state.used_bytes / kMiB, info.total_bytes / kMiB),
              fmt::format("{:>4}% {:>14}", state.gpu_utilization_percent, health_name(state)));
    *out += cells("", "", fmt::format("{:>20}", mig_mode(info)));
    *out += bottom;
    for (const ProcessEntry& row : rows) {
      processes += fmt::format(
          "|{:>5}   {:<4} {:<4} {:>9}  {:>5}   {:<40} {:>7}MiB |\n", name,
          info.kind == DeviceKind::kMig ? fmt::format("{}", info.gpu_instance_id) : "N/A",
          info.kind == DeviceKind::kMig ? fmt::format("{}", info.compute_instance_id) : "N/A",
          row.pid, kind_name(row.kind),
          shortened(command_of(row.pid),
                    row.faulted != 0 ? fmt::format(" (error {})", row.faulted) : "", 40),
          row.used_bytes / kMiB);
    }
  }
  *out += "\n" + wide + boxed("Processes:");
  *out += boxed(fmt::format("{:<74} {:>12}", " GPU   GI   CI        PID   Type   Process name",
                            "GPU Memory"));
  *out += boxed(fmt::format("{:<74} {:>12}", "       ID   ID", "Usage     "));
  *out += "|" + std::string(kWidth, '=') + "|\n";
  *out += processes.empty() ? boxed(" No running processes found") : processes;
  *out += wide;
  return Status::kOk;
}

Status smi_list(DriverClient* client, std::string* out) {
  for (uint32_t index = 0; index < client->device_count(); ++index) {
    DeviceInfo info;
    if (const Status status = client->get_device(index, &info); status != Status::kOk)
      return status;
    *out += info.kind == DeviceKind::kMig
                ? fmt::format("  MIG {}  Device {}: (UUID: {})\n", info.name,
                              info.gpu_instance_id - 1, info.uuid)
                : fmt::format("GPU {}: {} (UUID: {})\n", index, info.name, info.uuid);
  }
  return Status::kOk;
}

namespace {

// As nvidia-smi -c takes them: the number or the name.
int set_compute_mode(Command* command, const std::string& text) {
  constexpr std::string_view kNames[] = {"DEFAULT", "EXCLUSIVE_THREAD", "PROHIBITED",
                                         "EXCLUSIVE_PROCESS"};
  uint64_t mode = std::size(kNames);
  if (!parse_number(text, &mode)) {
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if (text == kNames[i]) mode = i;
    }
  }
  if (mode >= std::size(kNames) || mode == 1) {
    return complain("-c takes 0 DEFAULT, 2 PROHIBITED or 3 EXCLUSIVE_PROCESS", kExitUsage);
  }
  for (uint32_t index = 0; index < command->driver.device_count(); ++index) {
    uint32_t only = index;
    if (command->arguments.has("-i")) {
      if (const int code = find_gpu(command, &only, "-i"); code != kExitOk) return code;
    }
    Request request = make_request(Op::kSetComputeMode, only);
    request.arg = mode;
    Reply reply;
    const Status status = command->driver.call(&request, &reply);
    if (status != Status::kOk) return complain(status, "compute mode");
    if (command->arguments.has("-i")) break;
  }
  return kExitOk;
}

bool parse_mib(const std::string& text, const char* none, uint64_t none_bytes, uint64_t* bytes) {
  uint64_t mib = 0;
  if (text.empty()) return true;  // as it is
  if (text == none) {
    *bytes = none_bytes;
    return true;
  }
  return parse_number(text, &mib) && mib <= UINT64_MAX / kMiB && ((*bytes = mib * kMiB), true);
}

std::string show_mib(uint64_t bytes, const char* none) {
  return bytes == UINT64_MAX ? none : fmt::format("{} MiB", bytes / kMiB);
}

int memory_limits(Command* command) {
  const Arguments& arguments = command->arguments;
  uint32_t device = 0;
  if (arguments.has("--set") == arguments.has("--get")) {
    return complain("memory-limits needs either --set or --get", kExitUsage);
  }
  if (!arguments.has("-n")) return complain("memory-limits needs -n CGROUP", kExitUsage);
  if (const int code = find_gpu(command, &device, "-i"); code != kExitOk) return code;
  MemoryLimit limit = {};
  Status status = command->driver.get_memory_limit(device, arguments.value("-n").c_str(), &limit);
  if (status != Status::kOk) return complain(status, "memory-limits");
  if (arguments.has("--get")) {
    fmt::print("namespace: {}\nsoft limit: {}\nhard limit: {}\ncurrent used: {}\n",
               arguments.value("-n"), show_mib(limit.soft, "max"), show_mib(limit.hard, "max"),
               show_mib(limit.current_used, ""));
    return kExitOk;
  }
  if (!parse_mib(arguments.value("--soft-limit"), "default", 0, &limit.soft) ||
      !parse_mib(arguments.value("--hard-limit"), "max", UINT64_MAX, &limit.hard)) {
    return complain("a limit is a whole number of MiB, or default (soft) or max (hard)",
                    kExitUsage);
  }
  status = command->driver.set_memory_limit(device, limit);
  return status == Status::kOk ? kExitOk : complain(status, "too many cgroups have limits");
}

}  // namespace

int run_smi(Command* command) {
  const auto& words = command->arguments.words();
  if (words.size() == 1 && words[0] == "memory-limits") return memory_limits(command);
  if (!words.empty()) return complain(fmt::format("smi knows no '{}'", words[0]), kExitUsage);
  if (command->arguments.has("-c")) {
    return set_compute_mode(command, command->arguments.value("-c"));
  }
  int only = -1;
  if (command->arguments.has("-i")) {
    uint32_t device = 0;
    if (const int code = find_gpu(command, &device, "-i"); code != kExitOk) return code;
    only = static_cast<int>(device);
  }
  std::string table;
  const Status status = command->arguments.has("-L") ? smi_list(&command->driver, &table)
                                                     : smi_table(&command->driver, only, &table);
  if (status != Status::kOk) return complain(status, "smi");
  fmt::print("{}", table);
  return kExitOk;
}

}  // namespace gpusim
