#include "nvml/nvml_session.h"

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
  return status == Status::kOk ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
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
  for (uint32_t i = 0; i < count_; ++i) devices_[i].device = visible[i];
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

nvmlReturn_t Session::call(Request* request, Reply* reply) {
  Status status = client_.call(request, reply);
  if (status == Status::kDisconnected) {
    // A gpusimd that was restarted with other devices is another driver: their UUIDs would lie.
    if (connect() != NVML_SUCCESS) return NVML_ERROR_UNKNOWN;
    for (uint32_t i = 0; i < count_; ++i) {
      DeviceInfo info;
      const VisibleDevice& known = devices_[i].device;
      if (client_.get_device(known.driver_index, &info) != Status::kOk ||
          __builtin_strcmp(info.uuid, known.info.uuid) != 0) {
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
    default:
      return NVML_ERROR_UNKNOWN;
  }
}

}  // namespace gpusim::nvml
