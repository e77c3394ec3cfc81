#include "nvml/nvml_session.h"

#include <cstring>

namespace gpusim::nvml {
namespace {

pthread_mutex_t session_mutex = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

Lock::Lock() {
  pthread_mutex_lock(&session_mutex);
}
Lock::~Lock() {
  pthread_mutex_unlock(&session_mutex);
}

Session& Session::instance() {
  static Session* session = new Session;
  return *session;
}

nvmlReturn_t Session::connect() {
  const Status status = client_.connect_to(driver_folder(), Role::kObserver);
  if (status == Status::kBadRequest) return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
  if (status != Status::kOk || client_.get_driver(&driver_) != Status::kOk) {
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t Session::init() {
  if (init_count_ > 0) {
    ++init_count_;
    return NVML_SUCCESS;
  }
  const nvmlReturn_t connected = connect();
  if (connected != NVML_SUCCESS) return connected;
  VisibleDevice* visible = new VisibleDevice[kMaxDevices];
  const Status status = list_devices_with_file(&client_, driver_folder(), visible, &count_);
  gpu_count_ = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    devices_[i].device = visible[i];
    if (visible[i].info.kind != DeviceKind::kMig) gpu_count_ = i + 1;  // gpusimd lists them first
  }
  delete[] visible;
  if (status != Status::kOk) return NVML_ERROR_DRIVER_NOT_LOADED;
  init_count_ = 1;
  return NVML_SUCCESS;
}

nvmlReturn_t Session::shutdown() {
  if (init_count_ == 0) return NVML_ERROR_UNINITIALIZED;
  if (--init_count_ == 0) client_.disconnect();
  return NVML_SUCCESS;
}

bool Session::owns(nvmlDevice_t device) const {
  return device >= devices_ && device < devices_ + count_;
}

uint32_t Session::index_of(nvmlDevice_t device) const {
  return static_cast<uint32_t>(device - devices_);
}

nvmlReturn_t Session::since(uint32_t major) const {
  if (!initialized()) return NVML_SUCCESS;  // which the caller says by itself
  uint32_t own = 0;
  for (const char* at = driver_.driver_version; *at >= '0' && *at <= '9'; ++at) {
    own = own * 10 + static_cast<uint32_t>(*at - '0');
  }
  return own >= major ? NVML_SUCCESS : NVML_ERROR_FUNCTION_NOT_FOUND;
}

nvmlReturn_t Session::get_state(nvmlDevice_t device, DeviceState* state) {
  Request request = make_request(Op::kGetState, device->device.driver_index);
  Reply reply;
  const nvmlReturn_t result = call(&request, &reply);
  if (result != NVML_SUCCESS) return result;
  *state = reply.state;
  const bool is_same = state->generation == device->device.info.generation;
  return is_same && state->health != DeviceHealth::kLost ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
}

nvmlReturn_t usable(nvmlDevice_t device, const void* out) {
  Session& session = Session::instance();
  if (!session.initialized()) return NVML_ERROR_UNINITIALIZED;
  if (!session.owns(device) || out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  DeviceState state;
  return session.get_state(device, &state);
}

nvmlReturn_t usable_state(nvmlDevice_t device, const void* out, DeviceState* state) {
  Session& session = Session::instance();
  if (!session.initialized()) return NVML_ERROR_UNINITIALIZED;
  if (!session.owns(device) || out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t result = session.get_state(device, state);
  if (result != NVML_SUCCESS) return result;
  return state->health == DeviceHealth::kResetRequired ? NVML_ERROR_RESET_REQUIRED : NVML_SUCCESS;
}

nvmlReturn_t Session::call(Request* request, Reply* reply) {
  Status status = client_.call(request, reply);
  if (status == Status::kDisconnected) {
    // A gpusimd that was restarted with other devices is another driver: their UUIDs would lie.
    if (connect() != NVML_SUCCESS) return NVML_ERROR_UNKNOWN;
    for (uint32_t i = 0; i < count_; ++i) {
      DeviceInfo info;
      const VisibleDevice& known = devices_[i].device;
      if (client_.get_device(known.driver_index, &info) != Status::kOk ||
          strcmp(info.uuid, known.info.uuid) != 0) {
        client_.disconnect();
        return NVML_ERROR_GPU_IS_LOST;
      }
    }
    status = client_.call(request, reply);
  }
  return to_nvml(status);
}

nvmlReturn_t to_nvml(Status status) {
  switch (status) {
    case Status::kOk:
      return NVML_SUCCESS;
    case Status::kBadRequest:
    case Status::kNoSuchDevice:
      return NVML_ERROR_INVALID_ARGUMENT;
    case Status::kNotPermitted:
      return NVML_ERROR_NO_PERMISSION;
    case Status::kUnsupported:
      return NVML_ERROR_NOT_SUPPORTED;
    case Status::kNotFound:
      return NVML_ERROR_NOT_FOUND;
    case Status::kGpuLost:
      return NVML_ERROR_GPU_IS_LOST;
    case Status::kResetRequired:
      return NVML_ERROR_RESET_REQUIRED;
    default:
      return NVML_ERROR_UNKNOWN;
  }
}

}  // namespace gpusim::nvml
