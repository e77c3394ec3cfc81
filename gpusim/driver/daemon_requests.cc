// What each request of gpusimd's protocol does.
#include <algorithm>

#include "driver/daemon.h"

namespace gpusim {

Status Daemon::handle(SessionId id, const Client& client, const Request& request, Reply* reply) {
  accounting_->report_work(request.device, request.work_us, now_us());
  if (request.op >= Op::kInjectFault) return inject(client, request);
  Status status = Status::kUnsupported;
  switch (request.op) {
    case Op::kGetDevice:
      if (request.device >= accounting_->devices().size()) return Status::kNoSuchDevice;
      reply->device = accounting_->devices()[request.device];
      return Status::kOk;
    case Op::kGetState:
      return accounting_->state(request.device, now_us(), &reply->state);
    case Op::kListProcesses: {
      std::vector<ProcessEntry> rows;
      status = accounting_->processes(request.device, request.arg, &rows, &reply->value);
      reply->count = static_cast<uint32_t>(std::min<size_t>(rows.size(), kProcessesPerReply));
      std::copy_n(rows.begin(), reply->count, reply->processes);
      return status;
    }
    case Op::kSetComputeMode:
      if (!is_as_privileged_as_self(client.peer)) return Status::kNotPermitted;
      return accounting_->set_compute_mode(request.device, request.arg);
    case Op::kGetDriver:
      reply->driver = config_.driver;
      reply->driver.behaviours = accounting_->behaviours();
      return Status::kOk;
    case Op::kSetMemoryLimit: {
      if (!is_as_privileged_as_self(client.peer)) return Status::kNotPermitted;
      MemoryLimit limit = request.memory_limit;
      limit.cgroup[kCgroupTextSize - 1] = '\0';
      return accounting_->set_memory_limit(request.device, limit);
    }
    case Op::kGetMemoryLimit:
      reply->memory_limit = request.memory_limit;
      reply->memory_limit.cgroup[kCgroupTextSize - 1] = '\0';
      return accounting_->memory_limit(request.device, &reply->memory_limit);
    case Op::kContextCreate:
      status = accounting_->create_context(id, request.device, (request.flags & kViaMps) != 0);
      break;
    case Op::kContextDestroy:
      status = accounting_->destroy_context(id, request.device);
      break;
    case Op::kAllocate:
      status = accounting_->allocate(id, request.device, request.arg, &reply->value);
      break;
    case Op::kFree:
      status = accounting_->release(id, request.arg);
      break;
    case Op::kClientMemory:
      status = accounting_->client_memory(id, request.device, &reply->value, &reply->value2);
      break;
    case Op::kCheck:
      status = accounting_->check(id, request.device);
      break;
    case Op::kLaunch:
      status =
          accounting_->launch(id, request.device, request.arg, request.launch_percent,
                              static_cast<KernelFault>(request.flags), now_us(), &reply->value);
      break;
    case Op::kMpsAdmit:
      return accounting_->admit(id, request.pid, request.admission);
    case Op::kMpsRelease:
      return accounting_->revoke(id, request.pid);
    case Op::kMpsTerminate:
      return accounting_->terminate(id, request.pid);
    case Op::kMpsFault:
      return accounting_->set_server_fault(id, request.arg != 0);
    default:
      return Status::kUnsupported;
  }
  if (status == Status::kFaulted) reply->value = accounting_->sticky_error(id, request.device);
  return status;
}

Status Daemon::inject(const Client& client, const Request& request) {
  if (!is_as_privileged_as_self(client.peer)) return Status::kNotPermitted;
  const auto xid = static_cast<uint32_t>(std::min<uint64_t>(request.arg, UINT32_MAX));
  switch (request.op) {
    case Op::kInjectFault:
      return accounting_->inject_fault(request.device, request.pid, xid, request.flags);
    case Op::kInjectXid:
      return accounting_->inject_xid(request.device, request.pid, xid,
                                     (request.flags & kXidEventOnly) != 0);
    case Op::kLoseDevice:
      return accounting_->lose(request.device);
    case Op::kRestoreDevice: {
      if (request.device >= accounting_->devices().size()) return Status::kNoSuchDevice;
      const uint32_t next = accounting_->devices()[request.device].generation + 1;
      return accounting_->restore(request.device, (request.flags & kNewUuid) != 0
                                                      ? config_.new_uuid(request.device, next)
                                                      : "");
    }
    case Op::kResetDevice:
      return accounting_->reset(request.device);
    case Op::kSlowDevice:
      return accounting_->set_slow_ms(request.device, request.arg);
    case Op::kInjectEcc:
      return accounting_->inject_ecc(request.device, request.arg,
                                     (request.flags & kEccUncorrected) != 0);
    case Op::kSetBehaviour:
      accounting_->set_behaviours(static_cast<uint32_t>(request.arg), request.flags);
      return Status::kOk;
    default:
      return Status::kUnsupported;
  }
}

}  // namespace gpusim
