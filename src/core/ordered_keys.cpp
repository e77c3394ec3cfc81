#include "core/ordered_keys.h"

#include <algorithm>

#include "base/assert.h"

namespace cotenant::core {
namespace {

// Where `key` stands, or would stand, among the sorted keys; without branches that depend on data.
std::uint32_t position_of(const std::uint64_t* keys, std::uint32_t size, std::uint64_t key) {
  const std::uint64_t* from = keys;
  std::uint32_t left = size;
  while (left > 1) {
    const std::uint32_t half = left / 2;
    from += from[half - 1] < key ? half : 0;
    left -= half;
  }
  return static_cast<std::uint32_t>(from - keys) + (left == 1 && *from < key ? 1 : 0);
}

}  // namespace

std::size_t OrderedKeys::chunk_for(std::uint64_t key) const {
  const auto above = std::upper_bound(firsts_.begin(), firsts_.end(), key);
  return above == firsts_.begin() ? 0 : static_cast<std::size_t>(above - firsts_.begin()) - 1;
}

std::uint32_t OrderedKeys::new_chunk() {
  if (!unused_.empty()) {
    const std::uint32_t id = unused_.back();
    unused_.pop_back();
    chunks_[id].size = 0;
    return id;
  }
  chunks_.emplace_back();
  return static_cast<std::uint32_t>(chunks_.size() - 1);
}

void OrderedKeys::insert(std::uint64_t key) {
  ++size_;
  if (order_.empty()) {
    const std::uint32_t id = new_chunk();
    chunks_[id].keys[0] = key;
    chunks_[id].size = 1;
    order_.push_back(id);
    firsts_.push_back(key);
    return;
  }
  std::size_t at = chunk_for(key);
  if (chunk(at).size == kChunkKeys) {
    split(at);
    if (firsts_[at + 1] <= key) ++at;
  }
  Chunk& into = chunk(at);
  const std::uint32_t place = position_of(into.keys, into.size, key);
  COTENANT_ASSERT(place == into.size || into.keys[place] != key);
  std::copy_backward(into.keys + place, into.keys + into.size, into.keys + into.size + 1);
  into.keys[place] = key;
  ++into.size;
  if (place == 0) firsts_[at] = key;
}

void OrderedKeys::split(std::size_t at) {
  const std::uint32_t id = new_chunk();
  Chunk& low = chunk(at);
  Chunk& high = chunks_[id];
  const std::uint32_t kept = kChunkKeys / 2;
  std::copy(low.keys + kept, low.keys + low.size, high.keys);
  high.size = low.size - kept;
  low.size = kept;
  const auto after = static_cast<std::ptrdiff_t>(at) + 1;
  order_.insert(order_.begin() + after, id);
  firsts_.insert(firsts_.begin() + after, high.keys[0]);
}

void OrderedKeys::erase(std::uint64_t key) {
  COTENANT_ASSERT(!order_.empty());
  const std::size_t at = chunk_for(key);
  Chunk& from = chunk(at);
  const std::uint32_t place = position_of(from.keys, from.size, key);
  COTENANT_ASSERT(place < from.size && from.keys[place] == key);
  std::copy(from.keys + place + 1, from.keys + from.size, from.keys + place);
  --from.size;
  --size_;
  if (from.size == 0 || from.size < kChunkKeys / 8) {
    drop_or_merge(at);
  } else if (place == 0) {
    firsts_[at] = from.keys[0];
  }
}

// A thin chunk goes into its successor where that leaves room for more; an empty one goes.
void OrderedKeys::drop_or_merge(std::size_t at) {
  Chunk& thin = chunk(at);
  if (thin.size > 0) {
    firsts_[at] = thin.keys[0];
    if (at + 1 >= order_.size() || chunk(at + 1).size + thin.size > kChunkKeys * 3 / 4) return;
    Chunk& next = chunk(at + 1);
    std::copy_backward(next.keys, next.keys + next.size, next.keys + next.size + thin.size);
    std::copy(thin.keys, thin.keys + thin.size, next.keys);
    next.size += thin.size;
    firsts_[at + 1] = next.keys[0];
  }
  unused_.push_back(order_[at]);
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(at));
  firsts_.erase(firsts_.begin() + static_cast<std::ptrdiff_t>(at));
}

OrderedKeys::Cursor OrderedKeys::at_least(std::uint64_t key) const {
  if (order_.empty()) return {this, 0, 0};
  const std::size_t at = chunk_for(key);
  const Chunk& in = chunk(at);
  const std::uint32_t place = position_of(in.keys, in.size, key);
  if (place < in.size) return {this, at, place};
  return {this, at + 1, 0};
}

std::size_t OrderedKeys::bytes() const {
  return firsts_.capacity() * sizeof(std::uint64_t) +
         (order_.capacity() + unused_.capacity()) * sizeof(std::uint32_t) +
         chunks_.capacity() * sizeof(Chunk);
}

}  // namespace cotenant::core
