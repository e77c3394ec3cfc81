// Verbs that make things go wrong, and right again.
#include <fmt/format.h>

#include <cstdio>

#include "common/event_stream.h"
#include "common/gaps.h"
#include "common/text.h"
#include "tool/verbs.h"

namespace gpusim {
namespace {

constexpr uint64_t kMostXid = 9999;
constexpr uint64_t kMostPid = 4194304;

int call(Command* command, Request* request, const std::string& what) {
  Reply reply;
  const Status status = command->driver.call(request, &reply);
  return status == Status::kOk ? kExitOk : complain(status, what);
}

// A request for the GPU of --gpu, with the process of --pid.
int make(Command* command, Op op, Request* request) {
  uint32_t device = 0;
  if (const int code = find_gpu(command, &device); code != kExitOk) return code;
  *request = make_request(op, device);
  std::string error;
  uint64_t pid = 0;
  if (!command->arguments.number("--pid", 1, kMostPid, 0, &pid, &error)) {
    return complain(error, kExitUsage);
  }
  request->pid = static_cast<int32_t>(pid);
  return kExitOk;
}

int simple(Command* command, Op op, const std::string& what, uint32_t flags = 0) {
  Request request;
  if (const int code = make(command, op, &request); code != kExitOk) return code;
  request.flags = flags;
  return call(command, &request, what);
}

const char* kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::kNvml:
      return "event";
    case EventKind::kFatalFault:
      return "fatal-fault";
    case EventKind::kDeviceLost:
      return "lost";
    case EventKind::kDeviceRestored:
      return "restored";
  }
  return "?";
}

}  // namespace

int run_fault(Command* command) {
  Request request;
  if (const int code = make(command, Op::kInjectFault, &request); code != kExitOk) return code;
  std::string error;
  uint64_t cuda_error = 0;
  constexpr uint64_t kIllegalAddressXid = 31;
  if (!command->arguments.number("--xid", 1, kMostXid, kIllegalAddressXid, &request.arg, &error) ||
      !command->arguments.number("--error", 1, 999, 0, &cuda_error, &error)) {
    return complain(error, kExitUsage);
  }
  request.flags = static_cast<uint32_t>(cuda_error);
  return call(command, &request, "the process has no context on this GPU");
}

int run_xid(Command* command) {
  uint64_t xid = 0;
  const auto& words = command->arguments.words();
  if (words.size() != 1 || !parse_number(words[0], &xid) || xid == 0 || xid > kMostXid) {
    return complain("xid needs one number, for example: gpusim xid --gpu 0 31", kExitUsage);
  }
  Request request;
  if (const int code = make(command, Op::kInjectXid, &request); code != kExitOk) return code;
  request.arg = xid;
  request.flags = command->arguments.has("--event-only") ? kXidEventOnly : 0;
  return call(command, &request, "the process has no context on this GPU");
}

int run_lose(Command* command) {
  return simple(command, Op::kLoseDevice, "lose");
}

int run_restore(Command* command) {
  return simple(command, Op::kRestoreDevice, "restore",
                command->arguments.has("--new-uuid") ? kNewUuid : 0);
}

int run_reset(Command* command) {
  return simple(command, Op::kResetDevice, "processes are on the GPU, or it is off the bus");
}

int run_ecc(Command* command) {
  Request request;
  if (const int code = make(command, Op::kInjectEcc, &request); code != kExitOk) return code;
  std::string error;
  if (!command->arguments.number("--count", 1, UINT32_MAX, 1, &request.arg, &error)) {
    return complain(error, kExitUsage);
  }
  request.flags = command->arguments.has("--uncorrected") ? kEccUncorrected : 0;
  return call(command, &request, "ecc");
}

int run_slow(Command* command) {
  Request request;
  if (const int code = make(command, Op::kSlowDevice, &request); code != kExitOk) return code;
  std::string error;
  if (!command->arguments.has("--ms")) return complain("slow needs --ms N", kExitUsage);
  if (!command->arguments.number("--ms", 0, 600000, 0, &request.arg, &error)) {
    return complain(error, kExitUsage);
  }
  return call(command, &request, "slow");
}

int run_gap(Command* command) {
  DriverInfo info;
  Status status = command->driver.get_driver(&info);
  if (status != Status::kOk) return complain(status, "gap");
  if (!command->arguments.words().empty()) {
    uint32_t bits = 0;
    uint32_t on = 0;
    for (const std::string& word : command->arguments.words()) {
      if (parse_gap(word, &bits, &on)) continue;
      return complain(fmt::format("'{}' is not NAME=on|off; names: {}", word, gap_names()),
                      kExitUsage);
    }
    Request request = make_request(Op::kSetBehaviour);
    request.arg = bits;
    request.flags = on;
    if (const int code = call(command, &request, "gap"); code != kExitOk) return code;
    info.behaviours = (info.behaviours & ~bits) | on;
  }
  fmt::print("{}\n", show_gaps(info.behaviours));
  return kExitOk;
}

int run_events(Command* command) {
  std::string error;
  uint64_t timeout_s = 0;
  if (!command->arguments.number("--timeout", 1, 86400, 0, &timeout_s, &error)) {
    return complain(error, kExitUsage);
  }
  EventStream stream;
  const Status opened = stream.open(command->folder.c_str(), Role::kObserver);
  if (opened != Status::kOk) return complain(opened, "events");
  while (true) {
    EventEntry event;
    const Status status =
        stream.next(&event, timeout_s == 0 ? -1 : static_cast<int>(timeout_s) * 1000);
    if (status == Status::kNotFound) return kExitOk;
    if (status != Status::kOk) return complain(status, "events");
    fmt::print("{} {} gpu={} type=0x{:x} data={} pid={} hit=0x{:x} error={}\n", event.sequence,
               kind_name(event.kind), event.device, event.type, event.data, event.pid,
               event.devices_hit, event.cuda_error);
    fflush(stdout);
  }
}

}  // namespace gpusim
