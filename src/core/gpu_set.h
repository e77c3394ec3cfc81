// GPUs of one node, by index: a bit each (a node has at most 64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/limits.h"

namespace cotenant::core {

class GpuSet {
 public:
  static_assert(base::limits::kGpusPerInstance <= 64);

  GpuSet() = default;
  static GpuSet of(std::size_t gpu) {
    GpuSet set;
    set.insert(gpu);
    return set;
  }

  void insert(std::size_t gpu) { bits_ |= std::uint64_t{1} << gpu; }
  bool contains(std::size_t gpu) const { return (bits_ >> gpu & 1) != 0; }
  bool empty() const { return bits_ == 0; }
  std::size_t lowest() const { return static_cast<std::size_t>(__builtin_ctzll(bits_)); }
  int count() const { return __builtin_popcountll(bits_); }
  std::vector<std::size_t> list() const {
    std::vector<std::size_t> gpus;
    for_each([&](std::size_t gpu) { gpus.push_back(gpu); });
    return gpus;
  }
  template <class Function>
  void for_each(Function&& function) const {
    for (std::uint64_t left = bits_; left != 0; left &= left - 1) {
      function(static_cast<std::size_t>(__builtin_ctzll(left)));
    }
  }
  friend bool operator==(GpuSet, GpuSet) = default;

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace cotenant::core
