// gpusim: looks at a running gpusimd, and makes things go wrong in it.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "common/text.h"
#include "tool/verbs.h"

namespace gpusim {
namespace {

struct Verb {
  const char* name;
  const char* options;  // as Arguments::parse takes them
  bool connects;
  int (*run)(Command* command);
  const char* usage;
};

constexpr Verb kVerbs[] = {
    {"smi", "-i -c -n --soft-limit --hard-limit |--set --get -L ", true, run_smi,
     "smi [-i GPU] [-c MODE]                   GPUs and processes; sets the compute mode\n"
     "  smi -L                                   a line for each GPU, with its UUID\n"
     "  smi memory-limits --set -n CGROUP [--soft-limit MIB|default] [--hard-limit MIB|max] -i GPU\n"
     "  smi memory-limits --get -n CGROUP -i GPU\n"},
    {"cdi", "|--like-nvidia-ctk ", true, run_cdi,
     "cdi [--like-nvidia-ctk]                  the CDI spec; as the real tool writes it\n"},
    {"fault", "--gpu --pid --xid --error |", true, run_fault,
     "fault --gpu G [--pid P] [--xid 31] [--error CUDA]\n"
     "                                           a fatal error of a process, or of all on the GPU\n"},
    {"xid", "--gpu --pid |--event-only ", true, run_xid,
     "xid --gpu G N [--pid P] [--event-only]   the Xid and what its class entails\n"},
    {"ecc", "--gpu --count |--uncorrected ", true, run_ecc,
     "ecc --gpu G [--count N] [--uncorrected]  memory errors\n"},
    {"lose", "--gpu |", true, run_lose, "lose --gpu G                             off the bus\n"},
    {"restore", "--gpu |--new-uuid ", true, run_restore,
     "restore --gpu G [--new-uuid]             back again, on request as another GPU\n"},
    {"reset", "--gpu |", true, run_reset,
     "reset --gpu G                            ends \"reset required\"\n"},
    {"slow", "--gpu --ms |", true, run_slow,
     "slow --gpu G --ms N                      every answer about the GPU is so late; 0 ends it\n"},
    {"gap", "|", true, run_gap,
     "gap [NAME=on|off ...]                    known gaps of the real limits\n"},
    {"events", "--timeout |", true, run_events,
     "events [--timeout S]                     prints events, until none comes for S seconds\n"},
    {"hang-mps", "--gpu --pipe |", true, run_hang_mps,
     "hang-mps | hang-server | resume-mps | kill-mps (--gpu G | --pipe DIR)\n"},
    {"hang-server", "--gpu --pipe |", true, run_hang_server, ""},
    {"slow-mps", "--gpu --pipe --ms |", true, run_slow_mps,
     "slow-mps --ms N (--gpu G | --pipe DIR)   each console answer is so late\n"},
    {"resume-mps", "--gpu --pipe |", true, run_resume_mps, ""},
    {"kill-server", "--gpu |", true, run_kill_server,
     "kill-server --gpu G                      the MPS server dies\n"},
    {"kill-mps", "--gpu --pipe |", true, run_kill_mps, ""},
    {"nvidia-cdi-hook", "--folder --link |", false, run_hook, ""},
};

void print_usage(FILE* to) {
  fmt::print(to, "usage: gpusim [--dir DIR] COMMAND\n\n");
  for (const Verb& verb : kVerbs) {
    if (verb.usage[0] != '\0') fmt::print(to, "  {}", verb.usage);
  }
  fmt::print(to,
             "\nG is an index or a UUID. DIR is gpusimd's folder; default: GPUSIM_DIR, else "
             "/run/gpusim.\nExit code: 1 when gpusimd is not there or refuses, 2 for wrong "
             "arguments.\n");
}

int run(int argc, char** argv) {
  Command command;
  command.folder = driver_folder();
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--dir" && i + 1 < argc) {
      command.folder = argv[++i];
    } else if (word.starts_with("--dir=")) {
      command.folder = word.substr(strlen("--dir="));
    } else if (word == "--help" || word == "-h") {
      print_usage(stdout);
      return kExitOk;
    } else {
      words.push_back(word);
    }
  }
  if (words.empty()) {
    print_usage(stderr);
    return kExitUsage;
  }
  for (const Verb& verb : kVerbs) {
    if (words[0] != verb.name) continue;
    words.erase(words.begin());
    if (const auto error = command.arguments.parse(words, verb.options)) {
      return complain(*error, kExitUsage);
    }
    if (verb.connects) {
      const Status status = command.driver.connect_to(command.folder.c_str(), Role::kObserver);
      if (status != Status::kOk) {
        return complain(fmt::format("no gpusimd serves {}", command.folder));
      }
    }
    return verb.run(&command);
  }
  fmt::print(stderr, "gpusim: unknown command '{}'\n", words[0]);
  print_usage(stderr);
  return kExitUsage;
}

const char* status_text(Status status) {
  switch (status) {
    case Status::kNotPermitted:
      return "not permitted: it needs gpusimd's own privileges";
    case Status::kUnsupported:
      return "this driver or GPU does not have it";
    case Status::kDisconnected:
      return "gpusimd is gone";
    case Status::kGpuLost:
      return "the GPU is off the bus";
    case Status::kBadRequest:
      return "malformed or out of range";
    default:
      return nullptr;
  }
}

}  // namespace

int complain(const std::string& text, int exit_code) {
  fmt::print(stderr, "gpusim: {}\n", text);
  return exit_code;
}

int complain(Status status, const std::string& what) {
  const char* text = status_text(status);
  return complain(text == nullptr ? what : text, kExitFailure);
}

int find_gpu(Command* command, uint32_t* device, const std::string& option) {
  const std::string text = command->arguments.value(option);
  if (text.empty()) return complain(option + " is missing: an index or a UUID", kExitUsage);
  const uint32_t count = command->driver.device_count();
  uint64_t index = 0;
  if (parse_number(text, &index)) {
    if (index >= count) {
      return complain(fmt::format("there is no GPU {}: gpusimd has 0 to {}", index, count - 1));
    }
    *device = static_cast<uint32_t>(index);
    return kExitOk;
  }
  uint32_t found = count;
  for (uint32_t i = 0; i < count; ++i) {
    DeviceInfo info;
    if (command->driver.get_device(i, &info) != Status::kOk || !names_uuid(text, info.uuid)) {
      continue;
    }
    if (found != count) return complain(fmt::format("{} is the beginning of several UUIDs", text));
    found = i;
  }
  if (found == count) return complain(fmt::format("there is no GPU {}", text));
  *device = found;
  return kExitOk;
}

}  // namespace gpusim

int main(int argc, char** argv) {
  try {
    return gpusim::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpusim: {}\n", error.what());
    return 1;
  }
}
