// An ordered set of 64-bit keys for the placement index: find the least key at or above one, walk up
// from there. Keys lie sorted in chunks of at most 64 below a sorted directory of the chunks' first
// keys, so that a step costs about one cache line and an entry about 12 bytes.
//
// Not thread safe. A cursor is valid until the next insert or erase.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cotenant::core {

class OrderedKeys {
 public:
  class Cursor {
   public:
    bool at_end() const { return chunk_ >= set_->order_.size(); }
    std::uint64_t key() const { return set_->chunk(chunk_).keys[offset_]; }
    void advance() {
      if (++offset_ < set_->chunk(chunk_).size) return;
      ++chunk_;
      offset_ = 0;
    }

   private:
    friend class OrderedKeys;
    Cursor(const OrderedKeys* set, std::size_t chunk, std::uint32_t offset)
        : set_(set), chunk_(chunk), offset_(offset) {}
    const OrderedKeys* set_;
    std::size_t chunk_;
    std::uint32_t offset_;
  };

  // The key must not be there.
  void insert(std::uint64_t key);
  // The key must be there.
  void erase(std::uint64_t key);

  Cursor first() const { return {this, 0, 0}; }
  // The least key that is not below this one.
  Cursor at_least(std::uint64_t key) const;

  std::size_t size() const { return size_; }
  std::size_t bytes() const;  // of memory held

 private:
  static constexpr std::uint32_t kChunkKeys = 64;
  struct Chunk {
    std::uint32_t size = 0;
    std::uint64_t keys[kChunkKeys];
  };

  const Chunk& chunk(std::size_t at) const { return chunks_[order_[at]]; }
  Chunk& chunk(std::size_t at) { return chunks_[order_[at]]; }
  // The last chunk whose first key is not above `key`; 0 where there is none.
  std::size_t chunk_for(std::uint64_t key) const;
  std::uint32_t new_chunk();
  void split(std::size_t at);
  void drop_or_merge(std::size_t at);

  std::vector<std::uint64_t> firsts_;  // by position
  std::vector<std::uint32_t> order_;   // position -> chunk
  std::vector<Chunk> chunks_;
  std::vector<std::uint32_t> unused_;
  std::size_t size_ = 0;
};

}  // namespace cotenant::core
