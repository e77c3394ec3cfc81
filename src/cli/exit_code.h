// What the verbs return to the shell; `cotenant --help` lists them.
#pragma once

#include "base/result.h"

namespace cotenant::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;      // the server or this machine refused; stderr says why
inline constexpr int kExitUsage = 2;        // the command line is wrong
inline constexpr int kExitUnreachable = 3;  // no control plane answers at the endpoint

// Prints the error of a verb that runs on this machine to stderr and gives kExitRefused.
int refuse(const base::Error& error);

}  // namespace cotenant::cli
