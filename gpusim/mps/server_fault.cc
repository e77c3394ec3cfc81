// FAULT (NVIDIA's MPS documentation, architecture and "when to use"): a fatal GPU error reaches every
// client on the devices that the faulting one reaches. From then on the server takes no client, for
// any of its devices, until all that were hit have exited; then it makes its contexts anew.
#include <fmt/format.h>

#include "mps/server_process.h"

namespace gpusim::mps {
namespace {

constexpr uint32_t kVoltaMajor = 7;

}  // namespace

// False: the driver, or a device of ours, is gone.
bool ServerProcess::read_events() {
  EventEntry event = {};
  Status status;
  while ((status = events_.next(&event, 0)) == Status::kOk) {
    bool is_ours = false;
    for (const VisibleDevice& device : devices_) {
      is_ours = is_ours || event.device == device.driver_index;
    }
    if (event.kind == EventKind::kFatalFault) enter_fault(event.devices_hit);
    if (event.kind == EventKind::kDeviceLost && is_ours) {
      log_.line("Server is handling a fatal GPU error.");
      return false;
    }
  }
  return status == Status::kNotFound;
}

// Clients that carry a sticky error on one of the devices.
std::set<int32_t> ServerProcess::clients_hit(uint64_t devices_hit) {
  std::set<int32_t> hit;
  for (const VisibleDevice& device : devices_) {
    if ((devices_hit >> device.driver_index & 1) == 0) continue;
    Request request = make_request(Op::kListProcesses, device.driver_index);
    Reply reply;
    do {
      if (driver_.call(&request, &reply) != Status::kOk) break;
      for (uint32_t i = 0; i < reply.count && i < kProcessesPerReply; ++i) {
        const ProcessEntry& entry = reply.processes[i];
        if (entry.faulted != 0 && clients_.contains(entry.pid)) hit.insert(entry.pid);
      }
      request.arg += reply.count;
    } while (reply.count != 0 && request.arg < reply.value);
  }
  return hit;
}

void ServerProcess::enter_fault(uint64_t devices_hit) {
  uint64_t ours = 0;
  for (const VisibleDevice& device : devices_) ours |= uint64_t{1} << device.driver_index;
  devices_hit &= ours;
  if (devices_hit == 0) return;
  const bool is_new = faulted_devices_ == 0;
  faulted_devices_ |= devices_hit;
  affected_.merge(clients_hit(devices_hit));
  if (is_new) {
    Request request = make_request(Op::kMpsFault);
    request.arg = 1;
    Reply reply;
    driver_.call(&request, &reply);
    report(ChannelKind::kFault, 0);
  }
  const std::string prefix = fault_prefix();
  log_.line(prefix + "Server is handling a fatal GPU error.");
  for (const auto& [pid, client] : clients_) {
    log_.line(fmt::format("{}status of client {{{}, 1}} is {}", prefix, client.shown_pid,
                          affected_.contains(pid) ? "INACTIVE" : "ACTIVE"));
  }
  log_.line(prefix + "The following devices");
  for (size_t i = 0; i < devices_.size(); ++i) {
    if ((devices_hit >> devices_[i].driver_index & 1) != 0) log_.line(fmt::format("{}", i));
  }
  log_.line(prefix + "The following clients have a sticky error set:");
  for (const int32_t pid : affected_) log_.line(fmt::format("{}", shown_pid(pid)));
  // Before Volta the fault is the server's own, and all its clients go with it.
  for (const VisibleDevice& device : devices_) {
    const bool is_hit = (devices_hit >> device.driver_index & 1) != 0;
    if (is_hit && device.info.cc_major < kVoltaMajor) must_exit_ = true;
  }
  if (!must_exit_) must_exit_ = !recover_if_all_left();
}

void ServerProcess::forget_affected(int32_t pid, int32_t shown_pid) {
  if (affected_.erase(pid) == 0) return;
  log_.line(fmt::format("Client {{{}, 1}} exit", shown_pid));
  must_exit_ = !recover_if_all_left();
}

// False: the contexts cannot be made anew.
bool ServerProcess::recover_if_all_left() {
  if (faulted_devices_ == 0 || !affected_.empty()) return true;
  const std::string prefix = fault_prefix();
  for (size_t i = 0; i < devices_.size(); ++i) {
    if ((faulted_devices_ >> devices_[i].driver_index & 1) == 0) continue;
    log_.line(fmt::format("{}Destroy server context on device {}", prefix, i));
    Request destroy = make_request(Op::kContextDestroy, devices_[i].driver_index);
    Request create = make_request(Op::kContextCreate, devices_[i].driver_index);
    Reply reply;
    driver_.call(&destroy, &reply);
    log_.line(fmt::format("{}Creating server context on device {}", prefix, i));
    if (driver_.call(&create, &reply) != Status::kOk) return false;
  }
  Request request = make_request(Op::kMpsFault);
  Reply reply;
  driver_.call(&request, &reply);
  faulted_devices_ = 0;
  report(ChannelKind::kRecovered, 0);
  return true;
}

// Newer drivers dropped the prefix.
std::string ServerProcess::fault_prefix() const {
  return traits_.old_wording ? "Volta MPS: " : "";
}

}  // namespace gpusim::mps
