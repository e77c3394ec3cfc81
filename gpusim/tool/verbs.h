// The verbs of `gpusim`, each one function.
#pragma once

#include <string>

#include "common/driver_client.h"
#include "tool/arguments.h"

namespace gpusim {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // gpusimd is not there, or refuses
inline constexpr int kExitUsage = 2;

// What a verb works with.
struct Command {
  std::string folder;  // gpusimd's
  Arguments arguments;
  DriverClient driver;  // connected, unless the verb does without
};

int complain(const std::string& text, int exit_code = kExitFailure);
int complain(Status status, const std::string& what);

// "--gpu": an index, or a UUID or the beginning of one. kExitOk, or it has complained.
int find_gpu(Command* command, uint32_t* device, const std::string& option = "--gpu");

// faults.cc
int run_fault(Command* command);
int run_xid(Command* command);
int run_lose(Command* command);
int run_restore(Command* command);
int run_reset(Command* command);
int run_ecc(Command* command);
int run_slow(Command* command);
int run_gap(Command* command);
int run_events(Command* command);

// mps_faults.cc
int run_hang_mps(Command* command);
int run_hang_server(Command* command);
int run_slow_mps(Command* command);
int run_resume_mps(Command* command);
int run_kill_server(Command* command);
int run_kill_mps(Command* command);

// smi.cc
int run_smi(Command* command);

// cdi_verbs.cc
int run_cdi(Command* command);
int run_hook(Command* command);

}  // namespace gpusim
