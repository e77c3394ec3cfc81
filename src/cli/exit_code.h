// What the verbs return to the shell; `cotenant --help` lists them.
#pragma once

namespace cotenant::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;      // the server or this machine refused; stderr says why
inline constexpr int kExitUsage = 2;        // the command line is wrong
inline constexpr int kExitUnreachable = 3;  // no control plane answers at the endpoint

}  // namespace cotenant::cli
