#include "tool/smi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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

}  // namespace

Status smi_table(DriverClient* client, int only, std::string* out) {
  DriverInfo driver;
  if (const Status status = client->get_driver(&driver); status != Status::kOk) return status;
  *out = fmt::format("gpusim smi   Driver Version: {}   CUDA Version: {}.{}   (simulated)\n\n",
                     driver.driver_version, driver.cuda_version / 1000,
                     driver.cuda_version % 1000 / 10);
  size_t width = 22;
  for (uint32_t index = 0; index < client->device_count(); ++index) {
    DeviceInfo info;
    const Status status = client->get_device(index, &info);
    if (status != Status::kOk) return status;
    width = std::max(width, strlen(info.name));
  }
  *out += fmt::format("{:<4} {:<{}} {:<41} {:>9} {:>9} {:>9} {:>5}  {}\n", "GPU", "Name", width,
                      "UUID", "Used MiB", "Free MiB", "Total MiB", "Util", "Compute M.");
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
    const uint64_t usable = info.total_bytes - info.reserved_bytes;
    const uint64_t free_bytes = usable > state.used_bytes ? usable - state.used_bytes : 0;
    *out +=
        fmt::format("{:<4} {:<{}} {:<41} {:>9} {:>9} {:>9} {:>4}%  {}\n", show_index(info, index),
                    info.name, width, info.uuid, state.used_bytes / kMiB, free_bytes / kMiB,
                    info.total_bytes / kMiB, state.gpu_utilization_percent, health_name(state));
    for (const ProcessEntry& row : rows) {
      processes += fmt::format("{:<4} {:>9} {:<5} {:>9}  {}{}\n", show_index(info, index), row.pid,
                               kind_name(row.kind), row.used_bytes / kMiB, command_of(row.pid),
                               row.faulted != 0 ? fmt::format("  (error {})", row.faulted) : "");
    }
  }
  *out +=
      fmt::format("\n{:<4} {:>9} {:<5} {:>9}  {}\n", "GPU", "PID", "Type", "Used MiB", "Process");
  *out += processes.empty() ? "no running processes\n" : processes;
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
    fmt::print("Namespace: {}\nSoft limit: {}\nHard limit: {}\nCurrent used: {}\n",
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
  const Status status = smi_table(&command->driver, only, &table);
  if (status != Status::kOk) return complain(status, "smi");
  fmt::print("{}", table);
  return kExitOk;
}

}  // namespace gpusim
