// Static SM partitions (-S; CUDA 13.1 and Ampere and newer): a GPU's multiprocessors in chunks, which
// the console gives to partitions and clients choose by CUDA_MPS_SM_PARTITION=<GPU's UUID>/<id>.
// (NVIDIA's MPS documentation, v2 interface. The chunk's size and the ids' letters are ours.)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol.h"

namespace gpusim::mps {

class SmPartitions {
 public:
  static constexpr uint32_t kSmsPerChunk = 8;

  struct Row {
    std::string gpu;
    std::string id;
    uint32_t chunks;
  };

  // Devices that are too old take no partitions.
  void set_devices(const std::vector<DeviceInfo>& devices);

  // "GPU-.../Dx4AAAAA", or nothing: no such GPU, or not so many free chunks.
  std::optional<std::string> add(std::string_view gpu, uint64_t chunks);
  // `id` with or without the GPU before it. False: there is none.
  bool remove(std::string_view gpu, std::string_view id);
  // Of "GPU-.../Dx4AAAAA": its part of the multiprocessors in hundredths of a percent.
  std::optional<uint32_t> hundredths(std::string_view name) const;

  std::vector<Row> rows(std::string_view gpu) const;
  std::vector<std::string> gpus() const;
  uint32_t free_chunks(std::string_view gpu) const;
  uint32_t total_chunks(std::string_view gpu) const;

 private:
  std::map<std::string, uint32_t, std::less<>> sm_counts_;  // by UUID
  std::map<std::string, Row, std::less<>> partitions_;      // by "GPU-.../id"
  uint32_t next_id_ = 0;
};

}  // namespace gpusim::mps
