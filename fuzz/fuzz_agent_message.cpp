#include "codec/agent_message.h"
#include "fuzz_target.h"

// What is understood is said and understood again the same, from either side.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cotenant;
  const std::string_view text = fuzz::as_text(data, size);
  if (const auto message = codec::decode_agent_message(text)) {
    const std::string said = codec::encode(*message);
    const auto again = codec::decode_agent_message(said);
    FUZZ_CHECK(again.has_value());
    FUZZ_CHECK(codec::encode(*again) == said);
  }
  if (const auto message = codec::decode_server_message(text)) {
    const std::string said = codec::encode(*message);
    const auto again = codec::decode_server_message(said);
    FUZZ_CHECK(again.has_value());
    FUZZ_CHECK(codec::encode(*again) == said);
  }
  return 0;
}
