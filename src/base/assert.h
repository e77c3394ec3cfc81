// Assertions for programmers' errors. They stay on in release builds: a control plane that has lost
// its invariants must not place work.
#pragma once

namespace cotenant::base {

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace cotenant::base

#define COTENANT_ASSERT(expression)    \
  ((expression) ? static_cast<void>(0) \
                : ::cotenant::base::assertion_failed(#expression, __FILE__, __LINE__))
