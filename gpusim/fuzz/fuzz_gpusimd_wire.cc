// gpusimd's socket: anything may come in, whole messages and pieces, on two connections in turn. The
// real daemon serves a real socket; afterwards nobody may hold anything, and it must still answer.
//
// Input: records. First byte: bit 0 the connection; bit 1: 1 = a request of the next 19 bytes (operation,
// device, flags, pid, argument), 0 = that many (second byte) raw bytes.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <variant>

#include "common/driver_client.h"
#include "common/unix_socket.h"
#include "driver/daemon.h"
#include "driver/device_table.h"

namespace {

using namespace gpusim;

void check(bool well, const char* what) {
  if (well) return;
  fprintf(stderr, "failed: %s\n", what);
  abort();
}

// The input, piece by piece; zeros after its end.
struct Reader {
  const uint8_t* data;
  size_t size;
  template <typename Value>
  Value take() {
    Value value = {};
    const size_t part = size < sizeof value ? size : sizeof value;
    memcpy(&value, data, part);
    data += part;
    size -= part;
    return value;
  }
};

// A folder of this process's own, whose socket stays.
const std::string& folder() {
  static const std::string path = [] {
    char name[] = "/tmp/gpusim-fuzz-XXXXXX";
    check(mkdtemp(name) != nullptr, "mkdtemp");
    return std::string(name);
  }();
  return path;
}

int listener() {
  static const int fd = listen_seqpacket(folder().c_str(), kSocketName, 0600, 16);
  check(fd >= 0, "listen");
  return fd;
}

int connect_raw() {
  const int fd = connect_seqpacket(folder().c_str(), kSocketName, 5);
  check(fd >= 0, "connect");
  return fd;
}

// Takes what has been answered so far; nobody waits for what is not owed.
void read_answers(int fd) {
  Reply reply;
  while (recv(fd, &reply, sizeof reply, MSG_DONTWAIT) > 0) {
  }
}

void send_record(Reader* reader, const int* fds) {
  const auto head = reader->take<uint8_t>();
  const int fd = fds[head & 1];
  if ((head & 2) == 0) {
    const auto length = reader->take<uint8_t>();
    const size_t part = length < reader->size ? length : reader->size;
    send(fd, reader->data, part, MSG_NOSIGNAL | MSG_DONTWAIT);
    reader->data += part;
    reader->size -= part;
    return;
  }
  Request request = make_request(static_cast<Op>(reader->take<uint8_t>()));
  request.magic = kProtocolMagic;
  request.version = kProtocolVersion;
  request.device = reader->take<uint8_t>();
  request.flags = reader->take<uint32_t>();
  request.pid = reader->take<uint8_t>() % 2 == 0 ? getpid() : reader->take<int32_t>();
  request.arg = reader->take<uint64_t>();
  // What the union holds is taken from the argument, so that every field of it is tried.
  memset(&request.admission, static_cast<int>(request.arg & 0xFF), sizeof request.admission);
  // A slow device would only make the fuzzer wait.
  if (request.op == Op::kSlowDevice) return;
  send(fd, &request, sizeof request, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto devices =
      make_devices(std::get<0>(parse_gpu_spec("1xL4,1xA100-40:3g.20gb")), 1);
  AccountingOptions options;
  options.has_memory_cgroups = true;
  options.confines_sm_faults = true;
  Accounting accounting(devices, options);
  Daemon::Config config;
  config.new_uuid = [](uint32_t, uint32_t) { return "GPU-00000000-0000-0000-0000-000000000001"; };
  config.devices_changed = [] {};
  config.kernel_log = [](const std::string&) {};
  const int stop = eventfd(0, EFD_CLOEXEC);
  Daemon daemon(&accounting, std::move(config), listener(), stop);
  bool ran_well = false;
  std::thread loop([&] { ran_well = daemon.run(); });

  Reader reader = {data, size};
  const int fds[2] = {connect_raw(), connect_raw()};
  for (int i = 0; i < 64 && reader.size != 0; ++i) {
    send_record(&reader, fds);
    for (const int fd : fds) read_answers(fd);
  }
  for (const int fd : fds) close(fd);
  // They are dropped in any order, so ask until they are gone.
  const int fd = connect_raw();
  Request request = make_request(Op::kHello);
  request.magic = kProtocolMagic;
  request.version = kProtocolVersion;
  Reply reply;
  check(send_message(fd, &request, sizeof request), "hello");
  check(receive_message(fd, &reply, sizeof reply) && reply.status == Status::kOk, "hello's answer");
  for (uint32_t device = 0; device < devices.size(); ++device) {
    uint64_t used = 1;
    for (int i = 0; i < 10000 && used != 0; ++i) {
      request.op = Op::kGetState;
      request.device = device;
      check(send_message(fd, &request, sizeof request), "ask");
      check(receive_message(fd, &reply, sizeof reply), "answer");
      used = reply.state.used_bytes;
    }
    check(used == 0, "nobody holds anything");
  }
  close(fd);
  const uint64_t one = 1;
  check(write(stop, &one, sizeof one) == sizeof one, "stop");
  loop.join();
  check(ran_well, "the loop ended well");
  close(stop);
  return 0;
}
