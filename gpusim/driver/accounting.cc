#include "driver/accounting.h"

#include <algorithm>

namespace gpusim {
namespace {

// cuMemAlloc hands out multiples of this. (A real driver takes whole 2 MiB pages from the device
// and cuts small blocks out of them; that is not imitated.)
constexpr uint64_t kGranularityBytes = 512;
constexpr uint64_t kSecondUs = 1000000;

}  // namespace

Accounting::Accounting(std::vector<DeviceInfo> devices, AccountingOptions options)
    : devices_(std::move(devices)), options_(options), books_(devices_.size()) {}

void Accounting::add_session(SessionId id, int32_t pid, Role role, std::string cgroup) {
  Session session;
  session.cgroup = std::move(cgroup);
  session.pid = pid;
  session.role = role;
  sessions_.emplace(id, std::move(session));
}

void Accounting::remove_session(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  drop_everything(&found->second);
  for (DeviceBook& book : books_) book.running.erase(id);
  if (found->second.role == Role::kMpsServer) {
    std::erase_if(admissions_, [id](const auto& entry) { return entry.second.server == id; });
    for (auto& [other_id, other] : sessions_) {
      if (other.server != id) continue;
      drop_everything(&other);
      other.server_gone = true;
    }
  }
  sessions_.erase(found);
}

Status Accounting::state(uint32_t device, uint64_t now_us, DeviceState* state) const {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  const DeviceBook& book = books_[device];
  *state = {};
  state->used_bytes = book.used_bytes;
  // What its MIG devices use is used on the GPU.
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].kind == DeviceKind::kMig && devices_[i].parent == device) {
      state->used_bytes += books_[i].used_bytes;
    }
  }
  state->ecc_corrected = book.ecc_corrected;
  state->ecc_uncorrected = book.ecc_uncorrected;
  state->generation = devices_[device].generation;
  state->health = devices_[device].health;
  state->compute_mode = book.compute_mode;
  // NVML's utilization is the busy part of the last sample period, here the last whole second.
  const uint64_t second = now_us / kSecondUs;
  uint64_t busy_us = 0;
  if (second == book.second) busy_us = std::max(book.last_busy_us, book.busy_us);
  if (second == book.second + 1) busy_us = book.busy_us;
  state->gpu_utilization_percent =
      static_cast<uint32_t>(std::min<uint64_t>(100, busy_us * 100 / kSecondUs));
  return Status::kOk;
}

Status Accounting::processes(uint32_t device, uint64_t first, std::vector<ProcessEntry>* rows,
                             uint64_t* total) const {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  const DeviceBook& book = books_[device];
  *total = book.processes.size();
  std::map<int32_t, uint32_t> faulted;
  for (const auto& [id, session] : sessions_) {
    const auto fault = session.faults.find(device);
    if (fault != session.faults.end()) faulted.emplace(session.pid, fault->second);
  }
  uint64_t row = 0;
  for (const auto& [pid, use] : book.processes) {
    if (row++ < first) continue;
    ProcessEntry entry = {};
    entry.pid = pid;
    entry.kind = use.is_server          ? ProcessKind::kMpsServer
                 : use.mps_contexts > 0 ? ProcessKind::kMpsClient
                                        : ProcessKind::kCompute;
    entry.used_bytes = use.allocated_bytes + use.context_bytes;
    const auto fault = faulted.find(pid);
    if (fault != faulted.end()) entry.faulted = fault->second;
    rows->push_back(entry);
  }
  return Status::kOk;
}

Status Accounting::set_compute_mode(uint32_t device, uint64_t mode) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (mode != static_cast<uint64_t>(ComputeMode::kDefault) &&
      mode != static_cast<uint64_t>(ComputeMode::kProhibited) &&
      mode != static_cast<uint64_t>(ComputeMode::kExclusiveProcess)) {
    return Status::kBadRequest;
  }
  books_[device].compute_mode = static_cast<ComputeMode>(mode);
  return Status::kOk;
}

Status Accounting::create_context(SessionId id, uint32_t device, bool via_mps) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return Status::kBadRequest;
  Session& session = found->second;
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (session.role == Role::kObserver) return Status::kNotPermitted;
  const Status standing = check(id, device);
  if (standing != Status::kOk) return standing;
  if (devices_[device].health == DeviceHealth::kLost) return Status::kGpuLost;
  if (devices_[device].health == DeviceHealth::kResetRequired) return Status::kResetRequired;
  DeviceBook& book = books_[device];
  const bool is_server = session.role == Role::kMpsServer;
  if (book.compute_mode == ComputeMode::kProhibited) return Status::kDeviceBusy;
  // "Not on vGPU" (MPS documentation); and of a GPU that is divided only the parts can be used.
  if (is_server && devices_[device].kind == DeviceKind::kVgpu) return Status::kUnsupported;
  if (devices_[device].mig_enabled != 0) return Status::kDeviceBusy;
  if (via_mps) {
    const auto admission = admissions_.find(session.pid);
    if (is_server || admission == admissions_.end()) return Status::kMpsServerGone;
    const Status admitted = check_admission(admission->second, device);
    if (admitted != Status::kOk) return admitted;
    session.server = admission->second.server;
  } else if (book.compute_mode == ComputeMode::kExclusiveProcess &&
             is_held_by_others(session, id, device)) {
    return Status::kDeviceBusy;
  } else if ((options_.behaviours & kPlainProcessBesideMps) == 0 && !is_server) {
    for (const auto& [pid, use] : book.processes) {
      if (use.is_server) return Status::kDeviceBusy;
    }
  }
  const uint64_t bytes =
      is_server ? devices_[device].mps_server_bytes : devices_[device].context_overhead_bytes;
  if (exceeds(session, device, bytes, true)) return Status::kOutOfMemory;
  ProcessUse& use = book.processes[session.pid];
  use.cgroup = session.cgroup;
  use.contexts += 1;
  use.context_bytes += bytes;
  use.is_server = use.is_server || is_server;
  if (via_mps) {
    const uint32_t connections = connections_of(device, admissions_[session.pid].terms);
    use.mps_contexts += 1;
    use.mps_connections += connections;
    book.mps_contexts += 1;
    book.mps_connections += connections;
  }
  book.used_bytes += bytes;
  session.contexts[device] += 1;
  return Status::kOk;
}

uint32_t Accounting::connections_of(uint32_t device, const MpsAdmission& terms) const {
  // Before Volta the clients share the server's own queues.
  constexpr uint32_t kVoltaMajor = 7;
  if (devices_[device].cc_major < kVoltaMajor || terms.connections == 0) return kDefaultConnections;
  return std::min(terms.connections, kMaxConnections);
}

// May a client with this admission have a context on the device now?
Status Accounting::check_admission(const Admission& admission, uint32_t device) const {
  const auto server = sessions_.find(admission.server);
  if (server == sessions_.end() || !server->second.contexts.contains(device)) {
    return Status::kDeviceBusy;  // the server was told by its CUDA_VISIBLE_DEVICES not to use it
  }
  if (server->second.in_fault && (server->second.devices_hit >> device & 1) != 0) {
    return Status::kMpsServerNotReady;
  }
  const MpsAdmission& terms = admission.terms;
  if ((terms.partitioned_devices >> device & 1) != 0 &&
      (terms.partition == 0 || terms.partition_device != device)) {
    return Status::kNoPartition;
  }
  const DeviceBook& book = books_[device];
  const uint32_t slots = devices_[device].client_slots;
  if (book.mps_contexts >= slots) return Status::kTooManyClients;
  // "May reduce the number of available clients" (MPS documentation, environment variables).
  const uint32_t connections = connections_of(device, terms);
  if (book.mps_connections + connections > slots * kDefaultConnections &&
      connections > kDefaultConnections) {
    return Status::kTooManyConnections;
  }
  if (book.mps_connections + connections > slots * kDefaultConnections) {
    return Status::kTooManyClients;
  }
  return Status::kOk;
}

Status Accounting::destroy_context(SessionId id, uint32_t device) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return Status::kBadRequest;
  if (!found->second.contexts.contains(device)) return Status::kNotFound;
  // What a dead context held is free when its process has ended, not before.
  if (found->second.faults.contains(device)) return Status::kFaulted;
  drop_contexts(&found->second, device, 1);
  return Status::kOk;
}

Status Accounting::allocate(SessionId id, uint32_t device, uint64_t bytes, uint64_t* handle) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return Status::kBadRequest;
  Session& session = found->second;
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  const Status standing = check(id, device);
  if (standing != Status::kOk) return standing;
  if (bytes == 0 || !session.contexts.contains(device)) return Status::kBadRequest;
  if (session.allocations.size() >= options_.max_allocations_per_session) {
    return Status::kTooManyAllocations;
  }
  if (bytes > usable_bytes(device)) return Status::kOutOfMemory;  // also keeps the sums in range
  bytes = (bytes + kGranularityBytes - 1) / kGranularityBytes * kGranularityBytes;
  if (exceeds(session, device, bytes, false) && !evict_for(session, device, bytes)) {
    return Status::kOutOfMemory;
  }
  *handle = next_handle_++;
  session.allocations[*handle] = Allocation{device, bytes};
  books_[device].processes[session.pid].allocated_bytes += bytes;
  books_[device].used_bytes += bytes;
  return Status::kOk;
}

Status Accounting::release(SessionId id, uint64_t handle) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return Status::kBadRequest;
  const Status standing = whole_session_status(found->second);
  if (standing != Status::kOk) return standing;
  const auto allocation = found->second.allocations.find(handle);
  if (allocation == found->second.allocations.end()) return Status::kNotFound;
  if (found->second.faults.contains(allocation->second.device)) return Status::kFaulted;
  drop_allocation(&found->second, allocation);
  return Status::kOk;
}

Status Accounting::client_memory(SessionId id, uint32_t device, uint64_t* free,
                                 uint64_t* total) const {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return Status::kBadRequest;
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  const Status standing = check(id, device);
  if (standing != Status::kOk) return standing;
  *total = usable_bytes(device);
  *free = *total - books_[device].used_bytes;
  const Admission* admission = admission_of(found->second);
  if (admission != nullptr && admission->terms.limits[device] != 0) {
    const uint64_t charged = charged_to_limit(found->second, device);
    const uint64_t limit = admission->terms.limits[device];
    *free = std::min(*free, limit > charged ? limit - charged : 0);
  }
  // Of the device-memory cgroup: the leaf's limit shows as the total, one further up is enforced but
  // not shown.
  const uint64_t hard = cgroups_.get(device, found->second.cgroup).hard;
  if (hard < *total) {
    const uint64_t used = cgroup_used(device, found->second.cgroup);
    *total = hard;
    *free = std::min(*free, hard > used ? hard - used : 0);
  }
  return Status::kOk;
}

Status Accounting::whole_session_status(const Session& session) const {
  if (session.terminated) return Status::kClientTerminated;
  return session.server_gone ? Status::kMpsServerGone : Status::kOk;
}

Status Accounting::check(SessionId id, uint32_t device) const {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return Status::kBadRequest;
  const Status whole = whole_session_status(found->second);
  if (whole != Status::kOk) return whole;
  return found->second.faults.contains(device) ? Status::kFaulted : Status::kOk;
}

Status Accounting::admit(SessionId server, int32_t pid, const MpsAdmission& admission) {
  const auto found = sessions_.find(server);
  if (found == sessions_.end() || found->second.role != Role::kMpsServer) {
    return Status::kNotPermitted;
  }
  const auto present = admissions_.find(pid);
  if (present != admissions_.end() && present->second.server != server) return Status::kDeviceBusy;
  if (present != admissions_.end()) return Status::kOk;  // limits are a snapshot of the first start
  admissions_[pid] = Admission{server, admission};
  return Status::kOk;
}

Status Accounting::revoke(SessionId server, int32_t pid) {
  const auto found = admissions_.find(pid);
  if (found == admissions_.end() || found->second.server != server) return Status::kNotFound;
  admissions_.erase(found);
  for (auto& [id, session] : sessions_) {
    if (session.pid != pid || session.server != server) continue;
    drop_everything(&session);
    session.server_gone = true;
  }
  return Status::kOk;
}

Status Accounting::terminate(SessionId server, int32_t pid) {
  const auto found = admissions_.find(pid);
  if (found == admissions_.end() || found->second.server != server) return Status::kNotFound;
  for (auto& [id, session] : sessions_) {
    if (session.pid != pid || session.server != server) continue;
    drop_everything(&session);
    session.terminated = true;
  }
  return Status::kOk;
}

void Accounting::report_work(uint32_t device, uint64_t work_us, uint64_t now_us) {
  if (device >= books_.size() || work_us == 0) return;
  DeviceBook& book = books_[device];
  const uint64_t second = now_us / kSecondUs;
  if (second != book.second) {
    book.last_busy_us = second == book.second + 1 ? book.busy_us : 0;
    book.busy_us = 0;
    book.second = second;
  }
  book.busy_us = std::min(kSecondUs, book.busy_us + std::min(kSecondUs, work_us));
}

uint64_t Accounting::usable_bytes(uint32_t device) const {
  return devices_[device].total_bytes - devices_[device].reserved_bytes;
}

// Of the session's process, or, when the gap of several processes is closed, of its whole cgroup.
uint64_t Accounting::charged_to_limit(const Session& session, uint32_t device) const {
  const bool per_process = (options_.behaviours & kLimitPerProcess) != 0 || session.cgroup.empty();
  uint64_t charged = 0;
  for (const auto& [pid, use] : books_[device].processes) {
    if (per_process ? pid != session.pid : use.is_server || use.cgroup != session.cgroup) continue;
    charged += use.allocated_bytes + (options_.limit_includes_context ? use.context_bytes : 0);
  }
  return charged;
}

const Accounting::Admission* Accounting::admission_of(const Session& session) const {
  if (session.server == 0) return nullptr;
  const auto found = admissions_.find(session.pid);
  return found == admissions_.end() ? nullptr : &found->second;
}

bool Accounting::exceeds(const Session& session, uint32_t device, uint64_t bytes,
                         bool is_context) const {
  const DeviceBook& book = books_[device];
  if (bytes > usable_bytes(device) - book.used_bytes) return true;
  if (exceeds_cgroup(device, session.cgroup, bytes)) return true;
  const Admission* admission = admission_of(session);
  if (admission == nullptr || admission->terms.limits[device] == 0) return false;
  if (is_context && !options_.limit_includes_context) return false;
  const uint64_t charged = charged_to_limit(session, device);
  const uint64_t limit = admission->terms.limits[device];
  return charged > limit || bytes > limit - charged;
}

// EXCLUSIVE_PROCESS: one process may hold contexts. An MPS server and its clients count as one.
bool Accounting::is_held_by_others(const Session& session, SessionId id, uint32_t device) const {
  for (const auto& [pid, use] : books_[device].processes) {
    if (use.contexts == 0 || pid == session.pid) continue;
    const auto admission = admissions_.find(pid);
    if (admission != admissions_.end() && admission->second.server == id) continue;
    return true;
  }
  return false;
}

void Accounting::drop_contexts(Session* session, uint32_t device, uint32_t count) {
  const auto held = session->contexts.find(device);
  if (held == session->contexts.end()) return;
  count = std::min(count, held->second);
  held->second -= count;
  if (held->second == 0) {
    session->contexts.erase(held);
    for (auto at = session->allocations.begin(); at != session->allocations.end();) {
      const auto next = std::next(at);
      if (at->second.device == device) drop_allocation(session, at);
      at = next;
    }
  }
  DeviceBook& book = books_[device];
  ProcessUse& use = book.processes[session->pid];
  const uint64_t each = session->role == Role::kMpsServer ? devices_[device].mps_server_bytes
                                                          : devices_[device].context_overhead_bytes;
  use.contexts -= count;
  use.context_bytes -= each * count;
  book.used_bytes -= each * count;
  if (session->server != 0) {
    // All of a process's contexts on a device have as many connections.
    const uint32_t gone = std::min(count, use.mps_contexts);
    const uint32_t connections =
        use.mps_contexts == 0 ? 0 : use.mps_connections / use.mps_contexts * gone;
    use.mps_contexts -= gone;
    use.mps_connections -= connections;
    book.mps_contexts -= std::min(gone, book.mps_contexts);
    book.mps_connections -= std::min(connections, book.mps_connections);
  }
  forget_if_empty(device, session->pid);
}

void Accounting::drop_allocation(Session* session,
                                 std::map<uint64_t, Allocation>::iterator allocation) {
  const auto [device, bytes] = allocation->second;
  books_[device].used_bytes -= bytes;
  books_[device].processes[session->pid].allocated_bytes -= bytes;
  session->allocations.erase(allocation);
}

void Accounting::drop_everything(Session* session) {
  while (!session->contexts.empty()) {
    const auto [device, count] = *session->contexts.begin();
    drop_contexts(session, device, count);
  }
}

void Accounting::forget_if_empty(uint32_t device, int32_t pid) {
  const auto found = books_[device].processes.find(pid);
  if (found == books_[device].processes.end()) return;
  if (found->second.contexts == 0 && found->second.allocated_bytes == 0) {
    books_[device].processes.erase(found);
  }
}

}  // namespace gpusim
