// Integers only in resource arithmetic; the unit stands last in every name (memory_mib, cpu_units).
#pragma once

#include <cstdint>

namespace cotenant::base {

inline constexpr std::int64_t kBytesPerMib = std::int64_t{1024} * 1024;

// ECS: 1024 CPU units are one vCPU.
inline constexpr std::int64_t kCpuUnitsPerCore = 1024;

}  // namespace cotenant::base
