// A fleet as a file (JSON or YAML), for what --gpus has no words for:
//   {"driver": "580", "seed": 7,
//    "gpus": [{"model": "L4", "count": 2},
//             {"model": "A100-40", "mig": ["3g.20gb", "1g.5gb"]},
//             {"model": "L4-6Q"},
//             {"model": "H100", "memory_mib": 40000, "reserved_mib": 500, "context_mib": 300,
//              "mps_server_mib": 28, "uuid": "GPU-..."}]}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "driver/device_table.h"

namespace gpusim {

struct Fleet {
  std::vector<GpuSpec> gpus;
  std::string driver;  // "": not said
  std::optional<uint64_t> seed;
};

// The fleet, or a text that names file, member and what would be right.
std::variant<Fleet, std::string> read_fleet_file(const std::string& path);

}  // namespace gpusim
