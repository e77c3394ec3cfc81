#include "adapters/mps_console.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cotenant;
  const std::string_view text = fuzz::as_text(data, size);
  if (const auto servers = adapters::parse_server_list(text)) {
    for (const pid_t pid : *servers) FUZZ_CHECK(pid > 0);
  }
  if (const auto percent = adapters::parse_thread_percentage(text)) {
    FUZZ_CHECK(*percent >= 0 && *percent <= 100);
  }
  return 0;
}
