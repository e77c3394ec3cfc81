#include "tool/smi.h"

#include <fmt/format.h>

#include <fstream>
#include <vector>

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

}  // namespace

Status smi_table(DriverClient* client, std::string* out) {
  *out = fmt::format("gpusim smi   Driver Version: {}   CUDA Version: {}.{}   (simulated)\n\n",
                     kDriverVersion, kCudaVersion / 1000, kCudaVersion % 1000 / 10);
  *out += fmt::format("{:<4} {:<22} {:<41} {:>9} {:>9} {:>9} {:>5}  {}\n", "GPU", "Name", "UUID",
                      "Used MiB", "Free MiB", "Total MiB", "Util", "Compute M.");
  std::string processes;
  for (uint32_t index = 0; index < client->device_count(); ++index) {
    DeviceInfo info;
    DeviceState state;
    Status status = client->get_device(index, &info);
    if (status == Status::kOk) status = client->get_state(index, &state);
    std::vector<ProcessEntry> rows;
    if (status == Status::kOk) status = list_processes(client, index, &rows);
    if (status != Status::kOk) return status;
    const uint64_t free_bytes = info.total_bytes - info.reserved_bytes - state.used_bytes;
    *out +=
        fmt::format("{:<4} {:<22} {:<41} {:>9} {:>9} {:>9} {:>4}%  {}\n", index, info.name,
                    info.uuid, state.used_bytes / kMiB, free_bytes / kMiB, info.total_bytes / kMiB,
                    state.gpu_utilization_percent, mode_name(state.compute_mode));
    for (const ProcessEntry& row : rows) {
      processes += fmt::format("{:<4} {:>9} {:<5} {:>9}  {}\n", index, row.pid, kind_name(row.kind),
                               row.used_bytes / kMiB, command_of(row.pid));
    }
  }
  *out +=
      fmt::format("\n{:<4} {:>9} {:<5} {:>9}  {}\n", "GPU", "PID", "Type", "Used MiB", "Process");
  *out += processes.empty() ? "no running processes\n" : processes;
  return Status::kOk;
}

}  // namespace gpusim
