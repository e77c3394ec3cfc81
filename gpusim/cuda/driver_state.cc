#include "cuda/driver_state.h"

#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "common/pinned_limit.h"
#include "common/text.h"

namespace gpusim::cuda {
namespace {

pthread_mutex_t driver_mutex = PTHREAD_MUTEX_INITIALIZER;

constexpr int kMaxStackDepth = 64;
struct ContextStack {
  CUcontext contexts[kMaxStackDepth];
  int depth;
};
thread_local ContextStack context_stack = {};

CUresult to_cuda(Status status) {
  switch (status) {
    case Status::kOk:
      return CUDA_SUCCESS;
    case Status::kOutOfMemory:
    case Status::kTooManyAllocations:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Status::kDeviceBusy:
    case Status::kGpuLost:
    case Status::kResetRequired:
      return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case Status::kMpsServerNotReady:
      return CUDA_ERROR_MPS_SERVER_NOT_READY;
    case Status::kTooManyClients:
      return CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
    case Status::kTooManyConnections:
      return CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED;
    case Status::kNoPartition:
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    case Status::kMpsServerGone:
      return CUDA_ERROR_MPS_RPC_FAILURE;
    case Status::kClientTerminated:
      return CUDA_ERROR_MPS_CLIENT_TERMINATED;
    case Status::kNoSuchDevice:
      return CUDA_ERROR_INVALID_DEVICE;
    case Status::kNotPermitted:
      return CUDA_ERROR_NOT_PERMITTED;
    case Status::kUnsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    case Status::kBadRequest:
    case Status::kNotFound:
      return CUDA_ERROR_INVALID_VALUE;
    case Status::kFaulted:  // whose error the answer names
    case Status::kDisconnected:
      break;
  }
  return CUDA_ERROR_UNKNOWN;
}

bool is_sticky(Status status) {
  return status == Status::kMpsServerGone || status == Status::kClientTerminated ||
         status == Status::kDisconnected;
}

// CUDA_DEVICE_MAX_CONNECTIONS: 1 to 32, anything else is as if it were not set.
uint32_t connections_from_environment() {
  const char* text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  uint64_t count = 0;
  const bool is_good = text != nullptr && parse_number(text, &count);
  return is_good && count <= kMaxConnections ? static_cast<uint32_t>(count) : 0;
}

// The percentage of a context of its own, once the process has opted in (MPS documentation,
// CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING): as the variable is at this moment.
uint32_t percent_of_new_context() {
  return parse_thread_percentage(getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
}

}  // namespace

uint64_t now_us() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

void sleep_until_us(uint64_t deadline_us) {
  timespec deadline = {};
  deadline.tv_sec = static_cast<time_t>(deadline_us / 1000000);
  deadline.tv_nsec = static_cast<long>(deadline_us % 1000000 * 1000);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

DriverState& DriverState::instance() {
  static DriverState* state = new DriverState;
  return *state;
}

CUresult DriverState::init() {
  if (initialized_) return owner_ == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = connect();
  if (result != CUDA_SUCCESS) {
    client_.disconnect();
    if (mps_.fd >= 0) close(mps_.fd);
    mps_ = MpsConnection();
    device_count_ = 0;
    return result;
  }
  owner_ = getpid();
  initialized_ = true;
  return CUDA_SUCCESS;
}

CUresult DriverState::connect() {
  const char* per_context = getenv("CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING");
  percent_per_context_ = per_context != nullptr && strcmp(per_context, "1") == 0;
  // A libcuda without a kernel driver finds no device.
  if (client_.connect_to(driver_folder(), Role::kCuda) != Status::kOk) return CUDA_ERROR_NO_DEVICE;
  uint32_t count = 0;
  VisibleDevice* devices = new VisibleDevice[kMaxDevices];
  const Status listed = list_devices_with_file(&client_, driver_folder(), devices, &count);
  // CUDA does not enumerate a GPU that has fallen off the bus.
  uint32_t present = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (devices[i].info.health != DeviceHealth::kLost) devices[present++] = devices[i];
  }
  count = present;

  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  mps::ClientHello hello;
  memset(&hello, 0, sizeof hello);
  hello.magic = mps::kMpsMagic;
  hello.percent_hundredths = parse_thread_percentage(getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
  for (uint32_t i = 0; i < count; ++i) hello.devices |= uint64_t{1} << devices[i].driver_index;
  if (visible != nullptr) {
    hello.has_visible_devices = 1;
    copy_text(visible, hello.visible_devices, sizeof hello.visible_devices);
  }
  const char* limit = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  if (limit != nullptr) copy_text(limit, hello.pinned_limit, sizeof hello.pinned_limit);
  const char* partition = getenv("CUDA_MPS_SM_PARTITION");
  if (partition != nullptr) copy_text(partition, hello.sm_partition, sizeof hello.sm_partition);
  hello.connections = connections_from_environment();
  hello.driver_pid = client_.own_pid();

  CUresult result = listed == Status::kOk ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
  if (result == CUDA_SUCCESS && count == 0) result = CUDA_ERROR_NO_DEVICE;
  if (result == CUDA_SUCCESS) result = connect_to_mps(hello, &mps_);
  if (result == CUDA_SUCCESS && mps_.via_mps) {
    // The server's list, already restricted to what this process may see.
    for (uint32_t i = 0; i < mps_.welcome.device_count && i < kMaxDevices; ++i) {
      for (uint32_t j = 0; j < count; ++j) {
        if (devices[j].driver_index == mps_.welcome.devices[i]) {
          devices_[device_count_++] = devices[j];
        }
      }
    }
  } else if (result == CUDA_SUCCESS) {
    apply_cuda_visible_devices(visible, devices, &count);
    for (uint32_t i = 0; i < count; ++i) devices_[i] = devices[i];
    device_count_ = count;
  }
  delete[] devices;
  if (result == CUDA_SUCCESS && device_count_ == 0) result = CUDA_ERROR_NO_DEVICE;
  return result;
}

CUresult DriverState::call(Request* request, Reply* reply) {
  if (sticky_ != CUDA_SUCCESS) return sticky_;
  if (faults_[request->device] != CUDA_SUCCESS) return faults_[request->device];
  request->work_us = pending_work_us_;
  if (pending_work_us_ != 0 && request->device != pending_work_device_) request->work_us = 0;
  if (request->work_us != 0) pending_work_us_ = 0;
  const Status status = client_.call(request, reply);
  if (is_sticky(status)) sticky_ = to_cuda(status);
  if (status == Status::kFaulted) {
    return faults_[request->device] = static_cast<CUresult>(reply->value);
  }
  return to_cuda(status);
}

CUresult DriverState::create_context(uint32_t ordinal, bool primary, CUcontext* out) {
  Request request = make_request(Op::kContextCreate, devices_[ordinal].driver_index);
  request.flags = mps_.via_mps ? kViaMps : 0;
  Reply reply;
  const CUresult result = call(&request, &reply);
  if (result != CUDA_SUCCESS) return result;
  const uint32_t percent = mps_.via_mps && percent_per_context_ ? percent_of_new_context() : 0;
  CUcontext context = new CUctx_st{ordinal, primary, 1, percent};
  contexts_[context] = new CUstream_st{context, 0};
  if (primary) primaries_[ordinal] = context;
  *out = context;
  return CUDA_SUCCESS;
}

CUresult DriverState::destroy_context(CUcontext context) {
  memory_.for_each_of(context, [this, context](uint64_t handle) {
    Request request = make_request(Op::kFree, devices_[context->device].driver_index);
    request.arg = handle;
    Reply reply;
    if (handle != 0) call(&request, &reply);
  });
  Request request = make_request(Op::kContextDestroy, devices_[context->device].driver_index);
  Reply reply;
  const CUresult result = call(&request, &reply);
  if (context->primary) primaries_[context->device] = nullptr;
  delete contexts_[context];
  contexts_.erase(context);
  for (auto at = streams_.begin(); at != streams_.end();) {
    CUstream stream = at->first;
    ++at;
    if (stream->context != context) continue;
    streams_.erase(stream);
    delete stream;
  }
  // The object stays: other threads' stacks may still name it, and their calls shall find
  // "context is destroyed", not freed memory. Contexts are few.
  return result;
}

CUresult DriverState::allocate(CUcontext context, uint64_t bytes, BlockKind kind,
                               CUdeviceptr* out) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t handle = 0;
  if (kind != BlockKind::kHost) {
    Request request = make_request(Op::kAllocate, devices_[context->device].driver_index);
    request.arg = bytes;
    Reply reply;
    const CUresult result = call(&request, &reply);
    if (result != CUDA_SUCCESS) return result;
    handle = reply.value;
  }
  *out = memory_.add(context, bytes, kind, handle);
  if (*out != 0) return CUDA_SUCCESS;
  if (handle != 0) {
    Request request = make_request(Op::kFree, devices_[context->device].driver_index);
    request.arg = handle;
    Reply reply;
    call(&request, &reply);
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult DriverState::release(CUdeviceptr pointer) {
  CUdeviceptr base = 0;
  uint64_t bytes = 0;
  BlockKind kind;
  CUcontext owner = nullptr;
  if (!memory_.find(pointer, &base, &bytes, &kind, &owner)) return CUDA_ERROR_INVALID_VALUE;
  if (fault_on(owner->device) != CUDA_SUCCESS) return fault_on(owner->device);
  uint64_t handle = 0;
  if (!memory_.remove(pointer, &handle)) return CUDA_ERROR_INVALID_VALUE;
  if (handle == 0) return CUDA_SUCCESS;
  Request request = make_request(Op::kFree, devices_[owner->device].driver_index);
  request.arg = handle;
  Reply reply;
  return call(&request, &reply);
}

CUresult DriverState::memory_info(uint32_t ordinal, uint64_t* free, uint64_t* total) {
  Request request = make_request(Op::kClientMemory, devices_[ordinal].driver_index);
  Reply reply;
  const CUresult result = call(&request, &reply);
  if (result != CUDA_SUCCESS) return result;
  *free = reply.value;
  *total = reply.value2;
  return CUDA_SUCCESS;
}

CUresult DriverState::compute_mode(uint32_t ordinal, int* mode) {
  Request request = make_request(Op::kGetState, devices_[ordinal].driver_index);
  Reply reply;
  const CUresult result = call(&request, &reply);
  if (result == CUDA_SUCCESS) *mode = static_cast<int>(reply.state.compute_mode);
  return result;
}

uint32_t DriverState::multiprocessors(uint32_t ordinal, CUcontext context) const {
  const uint32_t all = devices_[ordinal].info.sm_count;
  if (!percent_per_context_ || context == nullptr || !owns(context) || context->device != ordinal) {
    return all;
  }
  uint32_t percent = mps_.welcome.percent_hundredths;
  const uint32_t own = context->percent_hundredths;
  if (own != 0 && (percent == 0 || own < percent)) percent = own;
  if (percent == 0) return all;
  const uint32_t part = all * percent / 10000;
  return part == 0 ? 1 : part;
}

CUresult DriverState::check(CUcontext context) {
  Request request = make_request(Op::kCheck, devices_[context->device].driver_index);
  Reply reply;
  return call(&request, &reply);
}

CUresult DriverState::launch(CUcontext context, CUstream stream, uint64_t work_us,
                             KernelFault fault) {
  Request request = make_request(Op::kLaunch, devices_[context->device].driver_index);
  request.arg = work_us;
  request.flags = static_cast<uint32_t>(fault);
  request.launch_percent = context->percent_hundredths;
  Reply reply;
  const CUresult result = call(&request, &reply);
  if (result != CUDA_SUCCESS) return result;
  queue(context, stream, reply.value);
  return CUDA_SUCCESS;
}

int DriverState::cuda_version() {
  if (cuda_version_ != 0) return cuda_version_;
  DriverInfo info;
  DriverClient client;
  if (client.connect_to(driver_folder(), Role::kObserver) == Status::kOk &&
      client.get_driver(&info) == Status::kOk) {
    cuda_version_ = info.cuda_version;
  }
  return cuda_version_ == 0 ? kCudaVersion : cuda_version_;
}

CUstream DriverState::stream_of(CUcontext context, CUstream stream) const {
  if (streams_.count(stream) != 0) return stream;
  return contexts_.find(context)
      ->second;  // NULL, and the two special handles 1 (legacy) and 2 (per thread)
}

void DriverState::queue(CUcontext context, CUstream stream, uint64_t duration_us) {
  CUstream target = stream_of(context, stream);
  const uint64_t now = now_us();
  if (target->ready_at_us < now) target->ready_at_us = now;
  target->ready_at_us += duration_us;
}

void DriverState::add_work(CUcontext context, CUstream stream, uint64_t duration_us) {
  queue(context, stream, duration_us);
  const uint32_t device = devices_[context->device].driver_index;
  if (device != pending_work_device_) pending_work_us_ = 0;
  pending_work_device_ = device;
  pending_work_us_ += duration_us;
}

uint64_t DriverState::bytes_to_us(CUcontext context, uint64_t bytes) const {
  const uint64_t bytes_per_us = devices_[context->device].info.bandwidth_mib_per_ms * kMiB / 1000;
  return bytes / (bytes_per_us == 0 ? 1 : bytes_per_us) + 1;
}

uint64_t DriverState::ready_at_us(CUcontext context) const {
  uint64_t ready = contexts_.find(context)->second->ready_at_us;
  for (const auto& [stream, unused] : streams_) {
    if (stream->context == context && stream->ready_at_us > ready) ready = stream->ready_at_us;
  }
  return ready;
}

uint64_t DriverState::ready_at_us(CUcontext context, CUstream stream) const {
  return stream_of(context, stream)->ready_at_us;
}

Call::Call(Needs needs) {
  pthread_mutex_lock(&driver_mutex);
  DriverState& state = DriverState::instance();
  // A forked child may not use its parent's driver: NVIDIA's answers the same.
  if (!state.initialized_ || state.owner_ != getpid()) {
    error_ = CUDA_ERROR_NOT_INITIALIZED;
  } else if (needs == Needs::kContext) {
    context_ = current_context();
    if (context_ == nullptr) {
      error_ = CUDA_ERROR_INVALID_CONTEXT;
    } else if (!state.owns(context_)) {
      error_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    } else {
      error_ = state.sticky_ != CUDA_SUCCESS ? state.sticky_ : state.fault_on(context_->device);
    }
  }
}

void Call::unlock() {
  if (locked_) pthread_mutex_unlock(&driver_mutex);
  locked_ = false;
}

int driver_cuda_version() {
  pthread_mutex_lock(&driver_mutex);
  const int version = DriverState::instance().cuda_version();
  pthread_mutex_unlock(&driver_mutex);
  return version;
}

CUresult check_again(CUcontext context) {
  pthread_mutex_lock(&driver_mutex);
  DriverState& state = DriverState::instance();
  const CUresult result =
      state.owns(context) ? state.check(context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
  pthread_mutex_unlock(&driver_mutex);
  return result;
}

CUcontext current_context() {
  return context_stack.depth == 0 ? nullptr : context_stack.contexts[context_stack.depth - 1];
}

bool push_context(CUcontext context) {
  if (context_stack.depth == kMaxStackDepth) return false;
  context_stack.contexts[context_stack.depth++] = context;
  return true;
}

CUcontext pop_context() {
  return context_stack.depth == 0 ? nullptr : context_stack.contexts[--context_stack.depth];
}

void replace_current_context(CUcontext context) {
  pop_context();
  if (context != nullptr) push_context(context);
}

}  // namespace gpusim::cuda

using gpusim::cuda::DriverState;

GPUSIM_CUDA cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&gpusim::cuda::driver_mutex);
  const CUresult result = DriverState::instance().init();
  pthread_mutex_unlock(&gpusim::cuda::driver_mutex);
  return result;
}
