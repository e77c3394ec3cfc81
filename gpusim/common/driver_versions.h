// The driver releases that gpusimd can imitate, as data.
//
// The suffix -gpusim is the one honest marker by which a program learns that the GPU is simulated;
// parsers read the leading number.
#pragma once

#include <string_view>

#include "common/protocol.h"

namespace gpusim {

struct DriverVersion {
  uint32_t major;
  const char* text;  // "580.95.05"
  int cuda;          // 13000
};

// "470", "535.261.03", "615": the release of that major number, under the very text if it is a full
// version. Majors between two rows have the CUDA version of the lower one. False: not a version, or
// older than the first row.
bool find_driver_version(std::string_view text, DriverInfo* info);

// The leading number of a version text.
uint32_t driver_major(const char* version);

const DriverVersion* driver_versions(size_t* count);

}  // namespace gpusim
