#include "base/assert.h"

#include <cstdlib>

#include "base/log.h"

namespace cotenant::base {

void assertion_failed(const char* expression, const char* file, int line) {
  log::set_level(log::Level::kError);  // whoever wanted silence wants this
  log::error("assertion failed: {} ({}:{})", expression, file, line);
  std::abort();
}

}  // namespace cotenant::base
