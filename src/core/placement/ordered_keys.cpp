#include "core/placement/ordered_keys.h"

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

// The last of the parts, by their first keys, that may hold the key; 0 where all begin above it.
std::uint32_t part_of(const std::uint64_t* firsts, std::uint32_t size, std::uint64_t key) {
  const std::uint32_t above = position_of(firsts, size, key + 1);
  return above == 0 ? 0 : above - 1;
}

Room most_of(const Room* rooms, std::uint32_t size) {
  Room most;
  for (std::uint32_t i = 0; i < size; ++i) {
    most.cpu = std::max(most.cpu, rooms[i].cpu);
    most.memory = std::max(most.memory, rooms[i].memory);
    most.both = std::max(most.both, rooms[i].both);
  }
  return most;
}

// Without it the most may be less.
bool shapes_most(const Room& room, const Room& most) {
  return room.cpu == most.cpu || room.memory == most.memory || room.both == most.both;
}

template <class T>
void open_gap(T* items, std::uint32_t at, std::uint32_t size) {
  std::copy_backward(items + at, items + size, items + size + 1);
}

template <class T>
void close_gap(T* items, std::uint32_t at, std::uint32_t size) {
  std::copy(items + at + 1, items + size, items + at);
}

std::uint16_t coarse(std::int64_t amount, std::int64_t unit) {
  return static_cast<std::uint16_t>(
      std::clamp<std::int64_t>(amount / unit, 0, std::int64_t{UINT16_MAX}));
}

std::uint32_t take_unused(std::vector<std::uint32_t>& unused) {
  const std::uint32_t id = unused.back();
  unused.pop_back();
  return id;
}

}  // namespace

Room room_of(std::int64_t cpu_units, std::int64_t memory_mib) {
  const std::uint16_t cpu = coarse(cpu_units, kRoomCpuUnits);
  const std::uint16_t memory = coarse(memory_mib, kRoomMemoryMib);
  return {cpu, memory, std::min(cpu, static_cast<std::uint16_t>(memory / kRoomMemoryPerCpu))};
}

std::uint64_t OrderedKeys::Cursor::key() const {
  const Branch& branch = set_->branch_at(branch_);
  return set_->leaves_[branch.leaves[leaf_]].keys[offset_];
}

void OrderedKeys::Cursor::advance() {
  ++offset_;
  find();
}

void OrderedKeys::Cursor::find() {
  for (; branch_ < set_->top_.size(); ++branch_, leaf_ = 0, offset_ = 0) {
    if (!set_->top_[branch_].room.covers(need_)) continue;
    const Branch& branch = set_->branch_at(branch_);
    for (; leaf_ < branch.size; ++leaf_, offset_ = 0) {
      if (!branch.rooms[leaf_].covers(need_)) continue;
      const Leaf& leaf = set_->leaves_[branch.leaves[leaf_]];
      for (; offset_ < leaf.size; ++offset_) {
        if (leaf.rooms[offset_].covers(need_)) return;
      }
    }
  }
}

OrderedKeys::Place OrderedKeys::place_of(std::uint64_t key) const {
  Place place;
  const auto above = std::upper_bound(top_.begin(), top_.end(), key,
                                      [](std::uint64_t k, const Top& top) { return k < top.key; });
  if (above != top_.begin()) place.branch = static_cast<std::uint32_t>(above - top_.begin() - 1);
  const Branch& branch = branch_at(place.branch);
  place.leaf = part_of(branch.keys, branch.size, key);
  const Leaf& leaf = leaves_[branch.leaves[place.leaf]];
  place.offset = position_of(leaf.keys, leaf.size, key);
  return place;
}

OrderedKeys::Cursor OrderedKeys::at_least(std::uint64_t key, Room need) const {
  Cursor cursor(this, need);
  if (top_.empty()) return cursor;
  const Place place = place_of(key);
  cursor.branch_ = place.branch;
  cursor.leaf_ = place.leaf;
  cursor.offset_ = place.offset;
  cursor.find();
  return cursor;
}

std::uint32_t OrderedKeys::new_leaf() {
  if (!unused_leaves_.empty()) {
    const std::uint32_t id = take_unused(unused_leaves_);
    leaves_[id].size = 0;
    return id;
  }
  leaves_.emplace_back();
  return static_cast<std::uint32_t>(leaves_.size() - 1);
}

std::uint32_t OrderedKeys::new_branch() {
  if (!unused_branches_.empty()) {
    const std::uint32_t id = take_unused(unused_branches_);
    branches_[id].size = 0;
    return id;
  }
  branches_.emplace_back();
  return static_cast<std::uint32_t>(branches_.size() - 1);
}

void OrderedKeys::refresh(const Place& place) {
  Branch& branch = branch_at(place.branch);
  const Leaf& leaf = leaves_[branch.leaves[place.leaf]];
  const Room before = branch.rooms[place.leaf];
  const Room now = most_of(leaf.rooms, leaf.size);
  branch.keys[place.leaf] = leaf.keys[0];
  branch.rooms[place.leaf] = now;
  Top& top = top_[place.branch];
  top.key = branch.keys[0];
  if (now != before) top.room = most_of(branch.rooms, branch.size);
}

void OrderedKeys::insert(std::uint64_t key, Room room) {
  ++size_;
  if (top_.empty()) {
    const std::uint32_t id = new_branch();
    branches_[id].leaves[0] = new_leaf();
    branches_[id].keys[0] = key;
    branches_[id].rooms[0] = {};
    branches_[id].size = 1;
    top_.push_back({key, {}, id});
  }
  Place place = place_of(key);
  if (leaves_[branch_at(place.branch).leaves[place.leaf]].size == kWidth) {
    split_leaf(place);
    place = place_of(key);
  }
  Branch& branch = branch_at(place.branch);
  Leaf& leaf = leaves_[branch.leaves[place.leaf]];
  const std::uint32_t at = place.offset;
  COTENANT_ASSERT(at == leaf.size || leaf.keys[at] != key);
  open_gap(leaf.keys, at, leaf.size);
  open_gap(leaf.rooms, at, leaf.size);
  leaf.keys[at] = key;
  leaf.rooms[at] = room;
  ++leaf.size;
  const auto raise = [&](Room& most) {
    most.cpu = std::max(most.cpu, room.cpu);
    most.memory = std::max(most.memory, room.memory);
    most.both = std::max(most.both, room.both);
  };
  raise(branch.rooms[place.leaf]);
  raise(top_[place.branch].room);
  branch.keys[place.leaf] = leaf.keys[0];
  top_[place.branch].key = branch.keys[0];
}

void OrderedKeys::split_leaf(const Place& place) {
  if (branch_at(place.branch).size == kWidth) {
    split_branch(place.branch);
    const std::uint32_t kept = branch_at(place.branch).size;
    if (place.leaf >= kept) return split_leaf({place.branch + 1, place.leaf - kept, 0});
  }
  const std::uint32_t id = new_leaf();
  Branch& branch = branch_at(place.branch);
  Leaf& low = leaves_[branch.leaves[place.leaf]];
  Leaf& high = leaves_[id];
  const std::uint32_t kept = kWidth / 2;
  std::copy(low.keys + kept, low.keys + low.size, high.keys);
  std::copy(low.rooms + kept, low.rooms + low.size, high.rooms);
  high.size = low.size - kept;
  low.size = kept;
  const std::uint32_t at = place.leaf + 1;
  open_gap(branch.keys, at, branch.size);
  open_gap(branch.rooms, at, branch.size);
  open_gap(branch.leaves, at, branch.size);
  ++branch.size;
  branch.keys[at] = high.keys[0];
  branch.rooms[at] = most_of(high.rooms, high.size);
  branch.leaves[at] = id;
  refresh(place);
}

void OrderedKeys::split_branch(std::uint32_t position) {
  const std::uint32_t id = new_branch();
  Branch& low = branch_at(position);
  Branch& high = branches_[id];
  const std::uint32_t kept = kWidth / 2;
  std::copy(low.keys + kept, low.keys + low.size, high.keys);
  std::copy(low.rooms + kept, low.rooms + low.size, high.rooms);
  std::copy(low.leaves + kept, low.leaves + low.size, high.leaves);
  high.size = low.size - kept;
  low.size = kept;
  top_[position].room = most_of(low.rooms, low.size);
  top_.insert(top_.begin() + position + 1, {high.keys[0], most_of(high.rooms, high.size), id});
}

void OrderedKeys::erase(std::uint64_t key) {
  COTENANT_ASSERT(!top_.empty());
  const Place place = place_of(key);
  Branch& branch = branch_at(place.branch);
  Leaf& leaf = leaves_[branch.leaves[place.leaf]];
  const std::uint32_t at = place.offset;
  COTENANT_ASSERT(at < leaf.size && leaf.keys[at] == key);
  const Room gone = leaf.rooms[at];
  close_gap(leaf.keys, at, leaf.size);
  close_gap(leaf.rooms, at, leaf.size);
  --leaf.size;
  --size_;
  if (leaf.size < kWidth / 8) return thin_out(place);
  const Room most = branch.rooms[place.leaf];
  if (at == 0 || shapes_most(gone, most)) refresh(place);
}

// A thin leaf goes into its successor where that leaves room for more; an empty one goes.
void OrderedKeys::thin_out(const Place& place) {
  Branch& branch = branch_at(place.branch);
  Leaf& thin = leaves_[branch.leaves[place.leaf]];
  if (thin.size == 0) return remove_leaf(place.branch, place.leaf);
  if (place.leaf + 1 < branch.size) {
    Leaf& next = leaves_[branch.leaves[place.leaf + 1]];
    if (next.size + thin.size <= kWidth * 3 / 4) {
      std::copy_backward(next.keys, next.keys + next.size, next.keys + next.size + thin.size);
      std::copy_backward(next.rooms, next.rooms + next.size, next.rooms + next.size + thin.size);
      std::copy(thin.keys, thin.keys + thin.size, next.keys);
      std::copy(thin.rooms, thin.rooms + thin.size, next.rooms);
      next.size += thin.size;
      remove_leaf(place.branch, place.leaf);
    }
  }
  refresh(place);
}

void OrderedKeys::remove_leaf(std::uint32_t position, std::uint32_t leaf) {
  Branch& branch = branch_at(position);
  unused_leaves_.push_back(branch.leaves[leaf]);
  close_gap(branch.keys, leaf, branch.size);
  close_gap(branch.rooms, leaf, branch.size);
  close_gap(branch.leaves, leaf, branch.size);
  --branch.size;
  if (branch.size == 0) {
    unused_branches_.push_back(top_[position].branch);
    top_.erase(top_.begin() + position);
    return;
  }
  top_[position].key = branch.keys[0];
  top_[position].room = most_of(branch.rooms, branch.size);
}

void OrderedKeys::set_room(std::uint64_t key, Room room) {
  COTENANT_ASSERT(!top_.empty());
  const Place place = place_of(key);
  Leaf& leaf = leaves_[branch_at(place.branch).leaves[place.leaf]];
  COTENANT_ASSERT(place.offset < leaf.size && leaf.keys[place.offset] == key);
  const Room before = leaf.rooms[place.offset];
  leaf.rooms[place.offset] = room;
  const Room most = branch_at(place.branch).rooms[place.leaf];
  if (shapes_most(before, most) || !most.covers(room)) refresh(place);
}

std::size_t OrderedKeys::bytes() const {
  return top_.capacity() * sizeof(Top) + branches_.capacity() * sizeof(Branch) +
         leaves_.capacity() * sizeof(Leaf) +
         (unused_branches_.capacity() + unused_leaves_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace cotenant::core
