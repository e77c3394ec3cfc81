// The contents of simulated device memory in this process.
//
// Each allocation reserves addresses only. Pages of the host are taken when something is copied to
// it: they are charged to the container's memory cgroup, so untouched or uniformly filled device
// memory must cost none. Not thread-safe; the driver's lock covers it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "cuda/cuda_types.h"

namespace gpusim::cuda {

enum class BlockKind { kDevice, kManaged, kHost };

class MemoryStore {
 public:
  // 0 when the address space cannot be had.
  CUdeviceptr add(CUcontext context, uint64_t bytes, BlockKind kind, uint64_t handle);
  // False when `pointer` is not the beginning of a block.
  bool remove(CUdeviceptr pointer, uint64_t* handle);
  // Removes every block of a context; tells `freed` each block's handle.
  template <typename Freed>
  void for_each_of(CUcontext context, Freed freed) {
    for (auto at = blocks_.begin(); at != blocks_.end();) {
      const CUdeviceptr base = at->first;
      const bool mine = at->second.context == context;
      ++at;
      uint64_t handle = 0;
      if (mine && remove(base, &handle)) freed(handle);
    }
  }

  // False when the range is not within one block.
  bool contains(CUdeviceptr pointer, uint64_t bytes) const;
  bool find(CUdeviceptr pointer, CUdeviceptr* base, uint64_t* bytes, BlockKind* kind,
            CUcontext* context) const;

  // All three expect ranges that contains() has confirmed.
  void fill(CUdeviceptr to, const void* pattern, size_t pattern_bytes, uint64_t count);
  void write(CUdeviceptr to, const void* from, uint64_t bytes);
  void read(CUdeviceptr from, void* to, uint64_t bytes);
  void copy(CUdeviceptr from, CUdeviceptr to, uint64_t bytes);

 private:
  struct Block {
    uint64_t bytes;
    uint64_t mapped_bytes;
    uint64_t handle;
    CUcontext context;
    BlockKind kind;
    bool backed;     // readable and writable pages
    uint8_t filler;  // while not backed: every byte has this value
  };
  using Blocks = std::map<CUdeviceptr, Block>;

  Blocks::iterator block_of(CUdeviceptr pointer);
  Blocks::const_iterator block_of(CUdeviceptr pointer) const;
  static void back(CUdeviceptr base, Block* block);
  static void make_uniform(CUdeviceptr base, Block* block, uint8_t filler);

  Blocks blocks_;
};

}  // namespace gpusim::cuda
