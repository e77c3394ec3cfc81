// Static SM partitions (Ampere and newer): a GPU's multiprocessors in chunks, which the console gives
// to partitions and clients choose by CUDA_MPS_SM_PARTITION=<GPU's UUID>/<id>.
//
// v2 (-S, CUDA 13.1): sm_partition, lspart; v3: the module sm-partition, whose partitions have names
// and can be there before their server runs. (NVIDIA's MPS documentation: "when to use MPS" for the
// chunks, "common tasks" for ids and for the last partition of v2 that takes the remainder too. The
// letters of further ids are ours.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol.h"

namespace gpusim::mps {

struct PartitionSpec {
  std::string name;
  std::string gpu;  // UUID, a unique prefix of one, or an ordinal
  uint32_t chunks = 0;
  bool include_remainder = false;  // also the multiprocessors that make no whole chunk
};

class SmPartitions {
 public:
  enum class Dialect { kV2, kV3 };
  struct Row {
    std::string gpu;
    std::string name;  // v3
    std::string id;    // "": configured only
    uint32_t chunks = 0;
    uint32_t sms = 0;
    uint32_t number = 0;  // from 1, never used twice
    bool include_remainder = false;
  };

  explicit SmPartitions(Dialect dialect) : dialect_(dialect) {}

  // In the order of their ordinals. Those that are too old take no partitions.
  void set_devices(const std::vector<DeviceInfo>& devices);
  // By UUID, unique prefix of one, or (v3) ordinal.
  std::optional<std::string> find_device(std::string_view text) const;

  // nullptr: no such GPU, or not so many free chunks. Valid until the next change.
  const Row* add(const PartitionSpec& spec);
  // For when the server runs.
  void configure(const PartitionSpec& spec);
  // Creates what is configured only; the names of those that could not be.
  std::vector<std::string> create_configured();
  // The server has ended: its partitions are configured only.
  void forget_created();
  // By id, with or without the GPU before it, or by name. False: there is none.
  bool remove(std::string_view gpu, std::string_view id_or_name);

  // Of "GPU-.../id", the UUID whole or a unique prefix. nullptr: there is none.
  const Row* find(std::string_view value) const;
  const std::vector<Row>& rows() const { return rows_; }
  // Its part of the GPU's multiprocessors in hundredths of a percent, rounded up.
  uint32_t hundredths(const Row& row) const;
  bool is_divided(std::string_view gpu) const;
  std::vector<std::string> gpus() const;
  uint32_t total_chunks(std::string_view gpu) const;
  uint32_t free_chunks(std::string_view gpu) const;
  uint32_t total_sms(std::string_view gpu) const;
  uint32_t free_sms(std::string_view gpu) const;

 private:
  struct Device {
    std::string uuid;
    uint32_t sms;
    uint32_t chunk_sms;  // 0: takes no partitions
  };
  const Device* device(std::string_view uuid) const;
  bool create(Row* row);

  Dialect dialect_;
  std::vector<Device> devices_;
  std::vector<Row> rows_;
  uint32_t next_ = 0;
};

}  // namespace gpusim::mps
