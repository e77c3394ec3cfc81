// What every fuzz target has: its one function, and a check that stays on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"

#define FUZZ_CHECK(expression) COTENANT_ASSERT(expression)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace cotenant::fuzz {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace cotenant::fuzz
