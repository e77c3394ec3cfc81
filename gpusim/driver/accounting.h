// Who holds what on which device: the rules of the simulated kernel driver, without any I/O.
//
// A Session is one connection to gpusimd. Memory, contexts and limits count per process and device,
// as NVIDIA's do ("per client PROCESS on one device"), however many sessions a process opens.
// Single-threaded. Every call either does all or changes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "common/protocol.h"

namespace gpusim {

using SessionId = uint64_t;

struct AccountingOptions {
  // "CUDA's own allocations for a context count against [the pinned limit]" is documented but not
  // proven on every driver, so the contrary can be simulated too.
  bool limit_includes_context = true;
  // A connection cannot make gpusimd's own memory grow without bound.
  uint32_t max_allocations_per_session = 262144;
};

class Accounting {
 public:
  Accounting(std::vector<DeviceInfo> devices, AccountingOptions options);

  const std::vector<DeviceInfo>& devices() const { return devices_; }

  void add_session(SessionId session, int32_t pid, Role role);
  // Gives back everything the session held. An MPS server's clients lose their server with it.
  void remove_session(SessionId session);

  Status state(uint32_t device, uint64_t now_us, DeviceState* state) const;
  // Rows from `first` on, by pid; *total is how many there are in all.
  Status processes(uint32_t device, uint64_t first, std::vector<ProcessEntry>* rows,
                   uint64_t* total) const;
  Status set_compute_mode(uint32_t device, uint64_t mode);

  Status create_context(SessionId session, uint32_t device, bool via_mps);
  Status destroy_context(SessionId session, uint32_t device);
  Status allocate(SessionId session, uint32_t device, uint64_t bytes, uint64_t* handle);
  Status release(SessionId session, uint64_t handle);
  // Under a limit free is what the limit leaves (never more than the device has), while total stays
  // the whole card's: what cudaMemGetInfo shows under MPS.
  Status client_memory(SessionId session, uint32_t device, uint64_t* free, uint64_t* total) const;
  // The sticky state of a session: kOk, kClientTerminated or kMpsServerGone.
  Status check(SessionId session) const;

  using Limits = std::array<uint64_t, kMaxDevices>;  // bytes per device, 0 = none
  Status admit(SessionId server, int32_t pid, const Limits& limits);
  Status revoke(SessionId server, int32_t pid);
  Status terminate(SessionId server, int32_t pid);

  void report_work(uint32_t device, uint64_t work_us, uint64_t now_us);

 private:
  struct ProcessUse {
    uint64_t allocated_bytes = 0;
    uint64_t context_bytes = 0;
    uint32_t contexts = 0;
    uint32_t mps_contexts = 0;
    bool is_server = false;
  };
  struct DeviceBook {
    ComputeMode compute_mode = ComputeMode::kDefault;
    uint64_t used_bytes = 0;
    uint32_t mps_contexts = 0;
    std::map<int32_t, ProcessUse> processes;
    // Busy time of the running and of the last whole second.
    uint64_t second = 0;
    uint64_t busy_us = 0;
    uint64_t last_busy_us = 0;
  };
  struct Allocation {
    uint32_t device;
    uint64_t bytes;
  };
  struct Session {
    int32_t pid = 0;
    Role role = Role::kObserver;
    bool terminated = false;
    SessionId server = 0;  // the MPS server it goes through; 0: none
    bool server_gone = false;
    std::map<uint32_t, uint32_t> contexts;  // by device
    std::map<uint64_t, Allocation> allocations;
  };
  struct Admission {
    SessionId server = 0;
    Limits limits = {};
  };

  uint64_t usable_bytes(uint32_t device) const;
  uint64_t charged_to_limit(const ProcessUse& use) const;
  const Admission* admission_of(const Session& session) const;
  bool exceeds(const Session& session, uint32_t device, uint64_t bytes, bool is_context) const;
  bool is_held_by_others(const Session& session, SessionId id, uint32_t device) const;
  void drop_contexts(Session* session, uint32_t device, uint32_t count);
  void drop_allocation(Session* session, std::map<uint64_t, Allocation>::iterator allocation);
  void drop_everything(Session* session);
  void forget_if_empty(uint32_t device, int32_t pid);

  std::vector<DeviceInfo> devices_;
  AccountingOptions options_;
  std::vector<DeviceBook> books_;
  std::map<SessionId, Session> sessions_;
  std::map<int32_t, Admission> admissions_;  // by client pid
  uint64_t next_handle_ = 1;
};

}  // namespace gpusim
