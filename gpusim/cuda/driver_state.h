// What libcuda knows of this process: connection, devices, contexts, sticky error. Entry points
// begin with a Call, which locks, checks initialization and context, and carries the early answer.
#pragma once

#include <pthread.h>

#include <map>

#include "common/visible_devices.h"
#include "cuda/cuda_types.h"
#include "cuda/memory_store.h"
#include "cuda/mps_client.h"

struct CUctx_st {
  uint32_t device;  // ordinal in this process
  bool primary;
  uint32_t references;
  uint32_t percent_hundredths;  // of the multiprocessors, for this context alone; 0: the process's
};

struct CUstream_st {
  CUcontext context;
  uint64_t ready_at_us;  // modelled end of the work queued so far
};

namespace gpusim::cuda {

uint64_t now_us();
void sleep_until_us(uint64_t deadline_us);

class DriverState {
 public:
  static DriverState& instance();  // never destroyed

  CUresult init();

  uint32_t device_count() const { return device_count_; }
  const DeviceInfo& device(uint32_t ordinal) const { return devices_[ordinal].info; }
  bool owns(CUcontext context) const { return contexts_.count(context) != 0; }
  CUcontext primary(uint32_t ordinal) const { return primaries_[ordinal]; }

  CUresult create_context(uint32_t ordinal, bool primary, CUcontext* out);
  CUresult destroy_context(CUcontext context);

  CUresult allocate(CUcontext context, uint64_t bytes, BlockKind kind, CUdeviceptr* out);
  CUresult release(CUdeviceptr pointer);
  CUresult memory_info(uint32_t ordinal, uint64_t* free, uint64_t* total);
  CUresult compute_mode(uint32_t ordinal, int* mode);
  // Of the device: all of them, or what the context may use where the percentage is per context.
  uint32_t multiprocessors(uint32_t ordinal, CUcontext context) const;
  // Has this client been terminated, lost its server, or its context? Costs one round trip.
  CUresult check(CUcontext context);
  // Queues a kernel that takes work_us on a whole idle GPU; how long it takes now the driver says.
  CUresult launch(CUcontext context, CUstream stream, uint64_t work_us, KernelFault fault);
  // What the driver says of itself; also before cuInit.
  int cuda_version();

  // Queues modelled copies and fills; the ready time of the stream grows.
  void add_work(CUcontext context, CUstream stream, uint64_t duration_us);
  uint64_t bytes_to_us(CUcontext context, uint64_t bytes) const;
  uint64_t ready_at_us(CUcontext context) const;
  uint64_t ready_at_us(CUcontext context, CUstream stream) const;

  MemoryStore& memory() { return memory_; }
  std::map<CUstream, int>& streams() { return streams_; }

 private:
  friend class Call;
  DriverState() = default;
  CUresult connect();
  CUresult call(Request* request, Reply* reply);
  CUstream stream_of(CUcontext context, CUstream stream) const;
  void queue(CUcontext context, CUstream stream, uint64_t duration_us);
  CUresult fault_on(uint32_t ordinal) const { return faults_[devices_[ordinal].driver_index]; }

  bool initialized_ = false;
  bool percent_per_context_ = false;
  CUresult sticky_ = CUDA_SUCCESS;     // of the whole process
  CUresult faults_[kMaxDevices] = {};  // sticky on one device, by driver index
  int cuda_version_ = 0;               // 0: not asked yet
  pid_t owner_ = 0;
  DriverClient client_;
  MpsConnection mps_;
  uint32_t device_count_ = 0;
  VisibleDevice devices_[kMaxDevices] = {};
  CUcontext primaries_[kMaxDevices] = {};
  std::map<CUcontext, CUstream> contexts_;  // each with its default stream
  std::map<CUstream, int> streams_;
  uint64_t pending_work_us_ = 0;
  uint32_t pending_work_device_ = 0;
  MemoryStore memory_;
};

enum class Needs { kInit, kContext };

class Call {
 public:
  explicit Call(Needs needs);
  ~Call() { unlock(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  CUresult error() const { return error_; }
  DriverState& driver() { return DriverState::instance(); }
  CUcontext context() const { return context_; }
  // For what waits: modelled time passes outside the lock.
  void unlock();

 private:
  CUresult error_ = CUDA_SUCCESS;
  CUcontext context_ = nullptr;
  bool locked_ = true;
};

// Locks by itself; needs no cuInit.
int driver_cuda_version();

// After a wait, without a lock: did it end well?
CUresult check_again(CUcontext context);

// The calling thread's context stack.
CUcontext current_context();
bool push_context(CUcontext context);
CUcontext pop_context();
void replace_current_context(CUcontext context);

}  // namespace gpusim::cuda

#define GPUSIM_CALL(needs)                                 \
  ::gpusim::cuda::Call call(::gpusim::cuda::Needs::needs); \
  if (call.error() != CUDA_SUCCESS) return call.error()
