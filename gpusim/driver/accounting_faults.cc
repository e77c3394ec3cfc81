// Faults on demand, events, and the device-memory cgroup.
#include <algorithm>

#include "common/text.h"
#include "common/xid.h"
#include "driver/accounting.h"

namespace gpusim {
namespace {

// NVML's event bits.
constexpr uint64_t kEventSingleBitEcc = 0x1;
constexpr uint64_t kEventDoubleBitEcc = 0x2;
constexpr uint64_t kEventXid = 0x8;
constexpr uint64_t kEventGpuUnavailable = 0x4000;
constexpr uint64_t kEventRecoveryAction = 0x8000;

constexpr uint64_t kMaxSlowMs = 600000;
constexpr size_t kMaxPendingEvents = 4096;
constexpr uint32_t kXidOffTheBus = 79;
constexpr uint32_t kXidDoubleBit = 48;
constexpr uint32_t kXidMmuFault = 31;
constexpr uint32_t kXidSmException = 13;
constexpr uint64_t kFullPercent = 10000;

uint64_t bit(uint32_t device) {
  return uint64_t{1} << device;
}

}  // namespace

void Accounting::emit(EventKind kind, uint64_t type, uint32_t device, uint64_t data, int32_t pid,
                      uint64_t devices_hit, uint32_t cuda_error) {
  if (events_.size() >= kMaxPendingEvents) return;
  EventEntry event = {};
  event.kind = kind;
  event.type = type;
  event.device = device;
  event.data = data;
  event.pid = pid;
  event.devices_hit = devices_hit;
  event.cuda_error = cuda_error;
  events_.push_back(event);
}

// Field 230 (NVML_FI_DEV_GET_GPU_RECOVERY_ACTION): 0 none, 1 reset, 2 reboot.
void Accounting::emit_recovery_action(uint32_t device) {
  emit(EventKind::kNvml, kEventRecoveryAction, device,
       static_cast<uint64_t>(devices_[device].health == DeviceHealth::kGood   ? 0
                             : devices_[device].health == DeviceHealth::kLost ? 2
                                                                              : 1),
       0);
}

std::vector<EventEntry> Accounting::take_events() {
  return std::exchange(events_, {});
}

uint32_t Accounting::sticky_error(SessionId id, uint32_t device) const {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return 0;
  const auto fault = found->second.faults.find(device);
  return fault == found->second.faults.end() ? 0 : fault->second;
}

void Accounting::hit(Session* session, uint32_t device, uint32_t cuda_error) {
  // The first error stays: that is what sticky means.
  session->faults.emplace(device, cuda_error);
}

Status Accounting::inject_fault(uint32_t device, int32_t pid, uint32_t xid, uint32_t cuda_error) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (cuda_error == 0) cuda_error = xid_cuda_error(xid);
  uint64_t reached = bit(device);
  SessionId server = 0;
  const Admission* confined = nullptr;  // of the culprit, when its SM partition confines the fault
  if (pid != 0) {
    const auto culprit = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
      return entry.second.pid == pid && entry.second.role == Role::kCuda &&
             entry.second.contexts.contains(device);
    });
    if (culprit == sessions_.end()) return Status::kNotFound;
    server = culprit->second.server;
    const Admission* admission = admission_of(culprit->second);
    if (options_.confines_sm_faults && xid == kXidSmException && admission != nullptr &&
        admission->terms.partition != 0 && admission->terms.partition_device == device) {
      confined = admission;
    }
    if (server != 0 && confined == nullptr) {
      for (const auto& [other, count] : culprit->second.contexts) reached |= bit(other);
    }
  }
  bool servers_hit = false;
  for (auto& [id, session] : sessions_) {
    if (session.role == Role::kMpsServer && confined == nullptr && (pid == 0 || id == server)) {
      for (const auto& [at, count] : session.contexts) {
        if ((reached >> at & 1) == 0) continue;
        session.devices_hit |= bit(at);
        servers_hit = true;
      }
    }
    if (session.role != Role::kCuda) continue;
    const bool concerned = pid == 0              ? true
                           : confined != nullptr ? shares_partition(confined, session, device)
                           : server != 0         ? session.server == server
                                                 : session.pid == pid;
    if (!concerned) continue;
    for (const auto& [at, count] : session.contexts) {
      if ((reached >> at & 1) != 0) hit(&session, at, cuda_error);
    }
  }
  emit(servers_hit ? EventKind::kFatalFault : EventKind::kNvml, kEventXid, device, xid, pid,
       reached, cuda_error);
  return Status::kOk;
}

bool Accounting::shares_partition(const Admission* culprit, const Session& session,
                                  uint32_t device) const {
  const Admission* other = admission_of(session);
  return other != nullptr && other->server == culprit->server &&
         other->terms.partition == culprit->terms.partition &&
         other->terms.partition_device == device;
}

Status Accounting::inject_xid(uint32_t device, int32_t pid, uint32_t xid, bool event_only) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  const XidClass what = event_only ? XidClass::kNote : xid_class(xid);
  switch (what) {
    case XidClass::kNote:
      break;
    case XidClass::kApplication:
      return inject_fault(device, pid, xid, 0);
    case XidClass::kContained:
      for (auto& [id, session] : sessions_) {
        if (pid != 0 && session.pid == pid && session.contexts.contains(device)) {
          hit(&session, device, xid_cuda_error(xid));
        }
      }
      break;
    case XidClass::kResetRequired: {
      const Status status = inject_fault(device, 0, xid, 0);
      devices_[device].health = DeviceHealth::kResetRequired;
      emit_recovery_action(device);
      return status;
    }
    case XidClass::kLost:
      return lose(device);
  }
  emit(EventKind::kNvml, kEventXid, device, xid, pid);
  return Status::kOk;
}

Status Accounting::inject_ecc(uint32_t device, uint64_t count, bool uncorrected) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (count == 0) return Status::kBadRequest;
  uint64_t& counter = uncorrected ? books_[device].ecc_uncorrected : books_[device].ecc_corrected;
  counter = count > UINT64_MAX - counter ? UINT64_MAX : counter + count;
  emit(EventKind::kNvml, uncorrected ? kEventDoubleBitEcc : kEventSingleBitEcc, device, 0, 0);
  return uncorrected ? inject_xid(device, 0, kXidDoubleBit, false) : Status::kOk;
}

Status Accounting::lose(uint32_t device) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (devices_[device].health == DeviceHealth::kLost) return Status::kOk;
  // A lost GPU takes its MIG devices along.
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    const bool part = devices_[i].kind == DeviceKind::kMig && devices_[i].parent == device;
    if (i != device && !part) continue;
    for (auto& [id, session] : sessions_) {
      if (!session.contexts.contains(i)) continue;
      if (session.role == Role::kMpsServer) session.devices_hit |= bit(i);
      if (session.role == Role::kCuda) hit(&session, i, xid_cuda_error(kXidOffTheBus));
    }
    devices_[i].health = DeviceHealth::kLost;
  }
  emit(EventKind::kDeviceLost, kEventXid, device, kXidOffTheBus, 0, bit(device),
       xid_cuda_error(kXidOffTheBus));
  emit(EventKind::kNvml, kEventGpuUnavailable, device, 0, 0);
  emit_recovery_action(device);
  return Status::kOk;
}

Status Accounting::restore(uint32_t device, std::string_view uuid) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (devices_[device].health == DeviceHealth::kGood && uuid.empty()) return Status::kOk;
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    const bool part = devices_[i].kind == DeviceKind::kMig && devices_[i].parent == device;
    if (i != device && !part) continue;
    devices_[i].health = DeviceHealth::kGood;
    if (!uuid.empty()) ++devices_[i].generation;
    books_[i].compute_mode = ComputeMode::kDefault;  // it does not survive the driver's reload
    books_[i].running.clear();
  }
  books_[device].ecc_corrected = 0;
  books_[device].ecc_uncorrected = 0;
  if (!uuid.empty()) copy_text(uuid, devices_[device].uuid, sizeof devices_[device].uuid);
  emit(EventKind::kDeviceRestored, 0, device, 0, 0, bit(device));
  emit_recovery_action(device);
  return Status::kOk;
}

Status Accounting::reset(uint32_t device) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (devices_[device].health == DeviceHealth::kLost) return Status::kGpuLost;
  if (!books_[device].processes.empty()) return Status::kDeviceBusy;
  return restore(device, "");
}

Status Accounting::set_slow_ms(uint32_t device, uint64_t milliseconds) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (milliseconds > kMaxSlowMs) return Status::kBadRequest;
  books_[device].slow_ms = milliseconds;
  return Status::kOk;
}

uint64_t Accounting::slow_ms(uint32_t device) const {
  return device < books_.size() ? books_[device].slow_ms : 0;
}

void Accounting::set_behaviours(uint32_t bits, uint32_t on) {
  options_.behaviours = (options_.behaviours & ~bits) | (on & bits);
}

Status Accounting::set_server_fault(SessionId server, bool in_fault) {
  const auto found = sessions_.find(server);
  if (found == sessions_.end() || found->second.role != Role::kMpsServer) {
    return Status::kNotPermitted;
  }
  found->second.in_fault = in_fault;
  if (!in_fault) found->second.devices_hit = 0;
  return Status::kOk;
}

Status Accounting::launch(SessionId id, uint32_t device, uint64_t work_us,
                          uint32_t percent_hundredths, KernelFault fault, uint64_t now_us,
                          uint64_t* modelled_us) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return Status::kBadRequest;
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  Session& session = found->second;
  const Status standing = check(id, device);
  if (standing != Status::kOk) return standing;
  if (!session.contexts.contains(device)) return Status::kBadRequest;
  if (fault != KernelFault::kNone) {
    const bool is_address = fault == KernelFault::kIllegalAddress;
    if (!is_address && fault != KernelFault::kLaunchFailed) return Status::kBadRequest;
    return inject_fault(device, session.pid, is_address ? kXidMmuFault : kXidSmException,
                        static_cast<uint32_t>(fault));
  }
  // The lower of the process's and the context's.
  const Admission* admission = admission_of(session);
  const uint32_t of_process = admission == nullptr ? 0 : admission->terms.percent_hundredths;
  if (of_process != 0 && (percent_hundredths == 0 || of_process < percent_hundredths)) {
    percent_hundredths = of_process;
  }
  // A percentage is rounded down to whole multiprocessors, at least one.
  const uint64_t all = devices_[device].sm_count;
  const uint64_t percent =
      percent_hundredths == 0 ? kFullPercent : std::min<uint64_t>(kFullPercent, percent_hundredths);
  const uint64_t weight = std::max<uint64_t>(1, all * percent / kFullPercent) * kFullPercent /
                          std::max<uint64_t>(1, all);
  DeviceBook& book = books_[device];
  std::erase_if(book.running, [&](const auto& entry) { return entry.second.until_us <= now_us; });
  uint64_t total = weight;
  for (const auto& [other, running] : book.running) {
    if (other != id) total += running.weight;
  }
  constexpr uint64_t kLongestUs = uint64_t{24} * 3600 * 1000000;
  work_us = std::min(work_us, kLongestUs);
  *modelled_us = work_us * std::max(total, kFullPercent) / weight;
  Running& own = book.running[id];
  own.until_us = std::max(own.until_us, now_us) + *modelled_us;
  own.weight = weight;
  return Status::kOk;
}

uint64_t Accounting::cgroup_used(uint32_t device, std::string_view cgroup) const {
  uint64_t used = 0;
  for (const auto& [pid, use] : books_[device].processes) {
    if (!use.is_server && is_within(use.cgroup, cgroup)) {
      used += use.allocated_bytes + use.context_bytes;
    }
  }
  return used;
}

bool Accounting::exceeds_cgroup(uint32_t device, const std::string& cgroup, uint64_t bytes) const {
  for (const auto& [path, limit] : cgroups_.at_and_above(device, cgroup)) {
    const uint64_t used = cgroup_used(device, path);
    if (used > limit.hard || bytes > limit.hard - used) return true;
  }
  return false;
}

// The card is full, and the asking cgroup is within its soft limit, which is memory that it is
// promised: processes of cgroups that are above theirs are evicted (CUDA error 810).
bool Accounting::evict_for(const Session& session, uint32_t device, uint64_t bytes) {
  const CgroupLimit own = cgroups_.get(device, session.cgroup);
  if (own.soft == 0 || bytes > own.soft) return false;
  if (cgroup_used(device, session.cgroup) > own.soft - bytes) return false;
  for (auto& [id, other] : sessions_) {
    if (!exceeds(session, device, bytes, false)) return true;
    if (other.role != Role::kCuda || other.cgroup == session.cgroup) continue;
    if (!other.contexts.contains(device)) continue;
    if (cgroup_used(device, other.cgroup) <= cgroups_.get(device, other.cgroup).soft) continue;
    drop_everything(&other);
    other.terminated = true;
  }
  return !exceeds(session, device, bytes, false);
}

Status Accounting::set_memory_limit(uint32_t device, const MemoryLimit& limit) {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (!options_.has_memory_cgroups || devices_[device].kind == DeviceKind::kMig ||
      devices_[device].mig_enabled != 0) {
    return Status::kUnsupported;
  }
  const std::string path = normal_cgroup_path(limit.cgroup);
  if (path.empty() || limit.soft > limit.hard) return Status::kBadRequest;
  return cgroups_.set(device, path, {limit.soft, limit.hard}) ? Status::kOk : Status::kOutOfMemory;
}

Status Accounting::memory_limit(uint32_t device, MemoryLimit* limit) const {
  if (device >= devices_.size()) return Status::kNoSuchDevice;
  if (!options_.has_memory_cgroups || devices_[device].kind == DeviceKind::kMig ||
      devices_[device].mig_enabled != 0) {
    return Status::kUnsupported;
  }
  const std::string path = normal_cgroup_path(limit->cgroup);
  if (path.empty()) return Status::kBadRequest;
  const CgroupLimit found = cgroups_.get(device, path);
  limit->soft = found.soft;
  limit->hard = found.hard;
  limit->current_used = cgroup_used(device, path);
  return Status::kOk;
}

}  // namespace gpusim
