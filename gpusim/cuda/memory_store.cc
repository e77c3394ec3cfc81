#include "cuda/memory_store.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace gpusim::cuda {
namespace {

void* address(CUdeviceptr pointer) {
  return reinterpret_cast<void*>(pointer);
}

bool is_uniform(const void* pattern, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(pattern);
  for (size_t i = 1; i < bytes; ++i) {
    if (at[i] != at[0]) return false;
  }
  return true;
}

}  // namespace

CUdeviceptr MemoryStore::add(CUcontext context, uint64_t bytes, BlockKind kind, uint64_t handle) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > UINT64_MAX - page) return 0;
  const uint64_t mapped = (bytes + page - 1) / page * page;
  const bool host_may_touch = kind != BlockKind::kDevice;
  void* base = mmap(nullptr, mapped, host_may_touch ? PROT_READ | PROT_WRITE : PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return 0;
  const auto pointer = reinterpret_cast<CUdeviceptr>(base);
  blocks_[pointer] = Block{bytes, mapped, handle, context, kind, host_may_touch, 0};
  return pointer;
}

bool MemoryStore::remove(CUdeviceptr pointer, uint64_t* handle) {
  const auto found = blocks_.find(pointer);
  if (found == blocks_.end()) return false;
  munmap(address(pointer), found->second.mapped_bytes);
  *handle = found->second.handle;
  blocks_.erase(found);
  return true;
}

MemoryStore::Blocks::iterator MemoryStore::block_of(CUdeviceptr pointer) {
  auto next = blocks_.upper_bound(pointer);
  if (next == blocks_.begin()) return blocks_.end();
  --next;
  return pointer - next->first < next->second.bytes ? next : blocks_.end();
}

MemoryStore::Blocks::const_iterator MemoryStore::block_of(CUdeviceptr pointer) const {
  return const_cast<MemoryStore*>(this)->block_of(pointer);
}

bool MemoryStore::contains(CUdeviceptr pointer, uint64_t bytes) const {
  const auto found = block_of(pointer);
  return found != blocks_.end() && bytes <= found->second.bytes - (pointer - found->first);
}

bool MemoryStore::find(CUdeviceptr pointer, CUdeviceptr* base, uint64_t* bytes, BlockKind* kind,
                       CUcontext* context) const {
  const auto found = block_of(pointer);
  if (found == blocks_.end()) return false;
  *base = found->first;
  *bytes = found->second.bytes;
  *kind = found->second.kind;
  *context = found->second.context;
  return true;
}

void MemoryStore::back(CUdeviceptr base, Block* block) {
  if (block->backed) return;
  if (mprotect(address(base), block->mapped_bytes, PROT_READ | PROT_WRITE) != 0) abort();
  block->backed = true;
  if (block->filler != 0) memset(address(base), block->filler, block->bytes);
}

void MemoryStore::make_uniform(CUdeviceptr base, Block* block, uint8_t filler) {
  if (block->backed) {
    madvise(address(base), block->mapped_bytes, MADV_DONTNEED);
    mprotect(address(base), block->mapped_bytes, PROT_NONE);
  }
  block->backed = false;
  block->filler = filler;
}

void MemoryStore::fill(CUdeviceptr to, const void* pattern, size_t pattern_bytes, uint64_t count) {
  const auto found = block_of(to);
  Block& block = found->second;
  const uint64_t bytes = pattern_bytes * count;
  const auto* first = static_cast<const uint8_t*>(pattern);
  if (is_uniform(pattern, pattern_bytes)) {
    if (block.kind == BlockKind::kDevice && to == found->first && bytes == block.bytes) {
      make_uniform(found->first, &block, *first);
      return;
    }
    if (!block.backed && block.filler == *first) return;
    back(found->first, &block);
    memset(address(to), *first, bytes);
    return;
  }
  back(found->first, &block);
  for (uint64_t i = 0; i < count; ++i) {
    memcpy(address(to + i * pattern_bytes), pattern, pattern_bytes);
  }
}

void MemoryStore::write(CUdeviceptr to, const void* from, uint64_t bytes) {
  const auto found = block_of(to);
  back(found->first, &found->second);
  memcpy(address(to), from, bytes);
}

void MemoryStore::read(CUdeviceptr from, void* to, uint64_t bytes) {
  const auto found = block_of(from);
  if (found->second.backed) {
    memmove(to, address(from), bytes);
  } else {
    memset(to, found->second.filler, bytes);
  }
}

void MemoryStore::copy(CUdeviceptr from, CUdeviceptr to, uint64_t bytes) {
  const auto source = block_of(from);
  if (!source->second.backed) {
    const uint8_t filler = source->second.filler;
    fill(to, &filler, 1, bytes);
    return;
  }
  const auto target = block_of(to);
  back(target->first, &target->second);
  memmove(address(to), address(from), bytes);
}

}  // namespace gpusim::cuda
