// The two small files that the agent goes by: `state` says that the program runs, `exit` how it
// ended. Each is written whole or not at all, and is durable when it is there.
#pragma once

#include <stdint.h>

namespace shim {

int64_t wall_clock_ms();

bool write_record(const char* folder, const char* name, const char* text);

void remove_record(const char* folder, const char* name);

// Makes the folder's own watchers look: whoever watches its parent is told of changed attributes.
void touch(const char* folder);

}  // namespace shim
