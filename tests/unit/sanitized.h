// The long properties run shorter under a sanitizer, which makes them some ten times slower.
#pragma once

namespace cotenant::tests {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace cotenant::tests
