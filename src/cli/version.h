#pragma once

namespace cotenant::cli {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace cotenant::cli
