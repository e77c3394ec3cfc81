// The processes whose parent the shim is: the program, and whatever of its descendants has lost its own
// parent (the shim is their reaper, see PR_SET_CHILD_SUBREAPER).
#pragma once

#include <sys/types.h>

namespace shim {

// Sends the signal to each of them but `except` (0: to all).
void signal_children(int signal, pid_t except);

}  // namespace shim
