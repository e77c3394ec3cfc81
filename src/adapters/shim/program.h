// The program itself, from fork to exec.
#pragma once

#include <sys/types.h>

#include "options.h"

namespace shim {

struct Started {
  pid_t pid = -1;
  int output[2] = {-1, -1};  // our ends of its standard output and error, which do not block
  int input = -1;            // kept open where it is asked for
  char error[512] = "";      // why it does not run; then there is no process
};

// This process becomes the program, with its standard streams as they are. Returns never: what is wrong
// goes to `report`.
[[noreturn]] void become_program(const Options& options, int report);

void start_program(const Options& options, Started* started);

}  // namespace shim
