// Who holds what on which device: the rules of the simulated kernel driver, without any I/O.
//
// A Session is one connection to gpusimd. Memory, contexts and limits count per process and device,
// as NVIDIA's do ("per client PROCESS on one device"), however many sessions a process opens.
// Single-threaded. Every call either does all or changes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol.h"
#include "driver/memory_cgroups.h"

namespace gpusim {

using SessionId = uint64_t;

struct AccountingOptions {
  // "CUDA's own allocations for a context count against [the pinned limit]" is documented but not
  // proven on every driver, so the contrary can be simulated too.
  bool limit_includes_context = true;
  // A connection cannot make gpusimd's own memory grow without bound.
  uint32_t max_allocations_per_session = 262144;
  uint32_t behaviours = kPlainProcessBesideMps | kLimitPerProcess;
  bool has_memory_cgroups = false;  // driver 615 and later
  // What a multiprocessor raises hits the clients of one SM partition only: driver 610 and later.
  bool confines_sm_faults = false;
};

class Accounting {
 public:
  Accounting(std::vector<DeviceInfo> devices, AccountingOptions options);

  const std::vector<DeviceInfo>& devices() const { return devices_; }

  void add_session(SessionId session, int32_t pid, Role role, std::string cgroup = "");
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
  // The sticky state of a session, as a whole and on the device: kOk, kClientTerminated,
  // kMpsServerGone, kFaulted.
  Status check(SessionId session, uint32_t device) const;
  // The CUDA error behind kFaulted; 0: none.
  uint32_t sticky_error(SessionId session, uint32_t device) const;
  // A kernel that takes work_us on a whole idle GPU. It takes longer under a thread percentage, and
  // when other sessions' kernels run: then the multiprocessors are divided by what each may use.
  Status launch(SessionId session, uint32_t device, uint64_t work_us, uint32_t percent_hundredths,
                KernelFault fault, uint64_t now_us, uint64_t* modelled_us);

  Status admit(SessionId server, int32_t pid, const MpsAdmission& admission);
  Status revoke(SessionId server, int32_t pid);
  Status terminate(SessionId server, int32_t pid);
  Status set_server_fault(SessionId server, bool in_fault);

  // Faults on demand (accounting_faults.cc). A fault of an MPS client hits every client of its
  // server that has a context on any device on which the faulting one has one; that of a plain
  // process only itself; one without a pid every process on the device.
  Status inject_fault(uint32_t device, int32_t pid, uint32_t xid, uint32_t cuda_error);
  Status inject_xid(uint32_t device, int32_t pid, uint32_t xid, bool event_only);
  Status inject_ecc(uint32_t device, uint64_t count, bool uncorrected);
  Status lose(uint32_t device);
  // An empty uuid: the old one. What had a context before stays dead.
  Status restore(uint32_t device, std::string_view uuid);
  Status reset(uint32_t device);
  Status set_slow_ms(uint32_t device, uint64_t milliseconds);
  uint64_t slow_ms(uint32_t device) const;
  void set_behaviours(uint32_t bits, uint32_t on);
  uint32_t behaviours() const { return options_.behaviours; }
  // What happened since the last call; sequence and time are the caller's to fill in.
  std::vector<EventEntry> take_events();

  // The device-memory cgroup: a hard limit holds for all processes of a cgroup and those below it.
  Status set_memory_limit(uint32_t device, const MemoryLimit& limit);
  Status memory_limit(uint32_t device, MemoryLimit* limit) const;

  void report_work(uint32_t device, uint64_t work_us, uint64_t now_us);

 private:
  struct ProcessUse {
    uint64_t allocated_bytes = 0;
    uint64_t context_bytes = 0;
    uint32_t contexts = 0;
    uint32_t mps_contexts = 0;
    uint32_t mps_connections = 0;
    bool is_server = false;
    std::string cgroup;
  };
  struct Running {
    uint64_t until_us = 0;
    uint64_t weight = 0;  // share of the multiprocessors that it may use, in hundredths of percent
  };
  struct DeviceBook {
    ComputeMode compute_mode = ComputeMode::kDefault;
    uint64_t used_bytes = 0;
    uint32_t mps_contexts = 0;
    uint32_t mps_connections = 0;
    std::map<int32_t, ProcessUse> processes;
    // Busy time of the running and of the last whole second.
    uint64_t second = 0;
    uint64_t busy_us = 0;
    uint64_t last_busy_us = 0;
    uint64_t slow_ms = 0;
    uint64_t ecc_corrected = 0;
    uint64_t ecc_uncorrected = 0;
    std::map<SessionId, Running> running;
  };
  struct Allocation {
    uint32_t device;
    uint64_t bytes;
  };
  struct Session {
    int32_t pid = 0;
    Role role = Role::kObserver;
    std::string cgroup;
    bool terminated = false;
    bool in_fault = false;                // of an MPS server
    uint64_t devices_hit = 0;             // of an MPS server: since it was last well
    std::map<uint32_t, uint32_t> faults;  // by device: the CUDA error that is sticky there
    SessionId server = 0;                 // the MPS server it goes through; 0: none
    bool server_gone = false;
    std::map<uint32_t, uint32_t> contexts;  // by device
    std::map<uint64_t, Allocation> allocations;
  };
  struct Admission {
    SessionId server = 0;
    MpsAdmission terms = {};
  };

  uint64_t usable_bytes(uint32_t device) const;
  uint64_t charged_to_limit(const Session& session, uint32_t device) const;
  uint64_t cgroup_used(uint32_t device, std::string_view cgroup) const;
  bool exceeds_cgroup(uint32_t device, const std::string& cgroup, uint64_t bytes) const;
  Status whole_session_status(const Session& session) const;
  bool evict_for(const Session& session, uint32_t device, uint64_t bytes);
  void hit(Session* session, uint32_t device, uint32_t cuda_error);
  void emit(EventKind kind, uint64_t type, uint32_t device, uint64_t data, int32_t pid,
            uint64_t devices_hit = 0, uint32_t cuda_error = 0);
  void emit_recovery_action(uint32_t device);
  const Admission* admission_of(const Session& session) const;
  uint32_t connections_of(uint32_t device, const MpsAdmission& terms) const;
  Status check_admission(const Admission& admission, uint32_t device) const;
  bool shares_partition(const Admission* culprit, const Session& session, uint32_t device) const;
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
  MemoryCgroups cgroups_;
  std::vector<EventEntry> events_;
  uint64_t next_handle_ = 1;
};

}  // namespace gpusim
