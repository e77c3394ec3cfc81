#include "codec/json.h"
#include "fuzz_target.h"

// What is accepted is written and read again as the same value, and written the same again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using cotenant::codec::Json;
  const auto value = Json::parse(cotenant::fuzz::as_text(data, size));
  if (!value) {
    FUZZ_CHECK(!value.error().message.empty());
    return 0;
  }
  const std::string text = value->dump();
  const auto again = Json::parse(text);
  FUZZ_CHECK(again.has_value());
  FUZZ_CHECK(*again == *value);
  FUZZ_CHECK(again->dump() == text);
  FUZZ_CHECK(Json::parse(value->dump_pretty()).has_value());
  return 0;
}
