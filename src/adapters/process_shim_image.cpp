// The shim's bytes (shim/, cmake/ProcessShim.cmake), taken in by the assembler.
#include <cstddef>

#include "adapters/process_shim.h"

// NOLINTNEXTLINE(hicpp-no-assembler)
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "cotenant_process_shim_begin:\n"
    ".incbin \"" COTENANT_PROCESS_SHIM
    "\"\n"
    "cotenant_process_shim_end:\n"
    ".popsection\n");

extern "C" {
extern const char cotenant_process_shim_begin[] __attribute__((visibility("hidden")));
extern const char cotenant_process_shim_end[] __attribute__((visibility("hidden")));
}

namespace cotenant::adapters {

std::string_view process_shim_image() {
  return {cotenant_process_shim_begin,
          static_cast<std::size_t>(cotenant_process_shim_end - cotenant_process_shim_begin)};
}

}  // namespace cotenant::adapters
