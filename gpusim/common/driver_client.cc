#include "common/driver_client.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "common/text.h"
#include "common/unix_socket.h"

namespace gpusim {
namespace {

constexpr int kTimeoutS = 10;

}  // namespace

const char* driver_folder() {
  const char* folder = getenv(kDirEnvironment);
  return folder != nullptr && folder[0] != '\0' ? folder : kContainerDir;
}

Request make_request(Op op, uint32_t device) {
  Request request;
  memset(&request, 0, sizeof request);
  request.op = op;
  request.device = device;
  return request;
}

Status DriverClient::connect_to(const char* folder, Role role) {
  disconnect();
  char socket_folder[4096];
  const size_t folder_length = strlen(folder);
  if (folder_length + sizeof kSocketFolder + 1 > sizeof socket_folder) {
    return Status::kDisconnected;
  }
  memcpy(socket_folder, folder, folder_length);
  socket_folder[folder_length] = '/';
  memcpy(socket_folder + folder_length + 1, kSocketFolder, sizeof kSocketFolder);
  fd_ = connect_seqpacket(socket_folder, kSocketName, kTimeoutS);
  if (fd_ < 0) return Status::kDisconnected;
  owner_ = getpid();
  Request request = make_request(Op::kHello);
  request.flags = static_cast<uint32_t>(role);
  Reply reply;
  const Status status = call(&request, &reply);
  if (status != Status::kOk) {
    disconnect();
    return status;
  }
  device_count_ = reply.device_count;
  event_sequence_ = reply.value;
  own_pid_ = static_cast<int32_t>(reply.value2);
  return Status::kOk;
}

void DriverClient::disconnect() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool DriverClient::connected() const {
  return fd_ >= 0 && owner_ == getpid();
}

Status DriverClient::send(Request* request) {
  if (!connected()) return Status::kDisconnected;
  request->magic = kProtocolMagic;
  request->version = kProtocolVersion;
  request->sequence = ++sequence_;
  if (send_message(fd_, request, sizeof *request)) return Status::kOk;
  disconnect();
  return Status::kDisconnected;
}

Status DriverClient::receive(Reply* reply) {
  if (!connected()) return Status::kDisconnected;
  if (receive_message(fd_, reply, sizeof *reply) && reply->magic == kProtocolMagic &&
      reply->version == kProtocolVersion && reply->sequence == sequence_) {
    return reply->status;
  }
  disconnect();
  return Status::kDisconnected;
}

Status DriverClient::call(Request* request, Reply* reply) {
  const Status sent = send(request);
  return sent == Status::kOk ? receive(reply) : sent;
}

Status DriverClient::get_device(uint32_t device, DeviceInfo* info) {
  Request request = make_request(Op::kGetDevice, device);
  Reply reply;
  const Status status = call(&request, &reply);
  if (status == Status::kOk) *info = reply.device;
  return status;
}

Status DriverClient::get_state(uint32_t device, DeviceState* state) {
  Request request = make_request(Op::kGetState, device);
  Reply reply;
  const Status status = call(&request, &reply);
  if (status == Status::kOk) *state = reply.state;
  return status;
}

Status DriverClient::get_driver(DriverInfo* info) {
  Request request = make_request(Op::kGetDriver);
  Reply reply;
  const Status status = call(&request, &reply);
  if (status == Status::kOk) *info = reply.driver;
  return status;
}

Status DriverClient::get_memory_limit(uint32_t device, const char* cgroup, MemoryLimit* limit) {
  Request request = make_request(Op::kGetMemoryLimit, device);
  if (!copy_text(cgroup, request.memory_limit.cgroup, kCgroupTextSize)) return Status::kBadRequest;
  Reply reply;
  const Status status = call(&request, &reply);
  if (status == Status::kOk) *limit = reply.memory_limit;
  return status;
}

Status DriverClient::set_memory_limit(uint32_t device, const MemoryLimit& limit) {
  Request request = make_request(Op::kSetMemoryLimit, device);
  request.memory_limit = limit;
  Reply reply;
  return call(&request, &reply);
}

}  // namespace gpusim
