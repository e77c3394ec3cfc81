// The command line: options, help, and the table of verbs.
#pragma once

#include "cli/composition.h"

namespace cotenant::cli {

// Returns the process's exit code.
int run_app(int argc, char** argv, const Composition& composition);

}  // namespace cotenant::cli
