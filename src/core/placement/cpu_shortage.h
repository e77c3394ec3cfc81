// What GPU memory is worth less because the node's CPU does not do for it, at `per_gpu` milli-CPU a
// GPU: num/den * L * d^2 / need^2 for d = need - CPU left, need = L * per_gpu / 1000.
#pragma once

#include <cstdint>

namespace cotenant::core {

inline std::int64_t cpu_shortage(std::int64_t left_milli, std::int64_t cpu_milli,
                                 std::int64_t per_gpu, std::int64_t num, std::int64_t den) {
  const std::int64_t need = left_milli * per_gpu / 1000;
  const std::int64_t missing = need - cpu_milli;
  if (missing <= 0) return 0;
  // Beyond this the squares would not fit; no machine is so large.
  if (need > 5'000'000) return num * left_milli / den;
  return num * left_milli * missing * missing / (den * need * need);
}

}  // namespace cotenant::core
