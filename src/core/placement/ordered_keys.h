// An ordered set of 64-bit keys for the placement index, each with the room of the node that it stands
// for: find the least key at or above one whose node may have the CPU and memory asked for, walk up
// from there.
//
// A tree of three levels: keys lie sorted in leaves of at most 64, leaves in branches of at most 64,
// and a directory lists the branches. Leaves and branches know the most CPU and the most memory below
// them, so that a walk steps over whole parts of the tree whose nodes are full. An entry costs about
// 20 bytes. Not thread safe. A cursor is valid until the next change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cotenant::core {

// What a node has left, in coarse units, rounded down; more than fits counts as the most. Rounding a
// need down too, a node that can take it is never stepped over.
struct Room {
  std::uint16_t cpu = 0;     // kRoomCpuUnits each
  std::uint16_t memory = 0;  // kRoomMemoryMib each
  // The lesser of the two, at kRoomMemoryPerCpu: among nodes of which some lack CPU and others memory,
  // the most of each alone says little.
  std::uint16_t both = 0;
  bool covers(const Room& need) const {
    return cpu >= need.cpu && memory >= need.memory && both >= need.both;
  }
  friend bool operator==(const Room&, const Room&) = default;
};
inline constexpr std::int64_t kRoomCpuUnits = 16;
inline constexpr std::int64_t kRoomMemoryMib = 32;
inline constexpr int kRoomMemoryPerCpu = 2;  // 4 GiB for 1,024 units, as machines have
Room room_of(std::int64_t cpu_units, std::int64_t memory_mib);

class OrderedKeys {
 public:
  class Cursor {
   public:
    bool at_end() const { return branch_ >= set_->top_.size(); }
    std::uint64_t key() const;
    // To the next key whose room covers the need.
    void advance();

   private:
    friend class OrderedKeys;
    Cursor(const OrderedKeys* set, Room need) : set_(set), need_(need) {}
    void find();  // from the present position on
    const OrderedKeys* set_;
    Room need_;
    std::uint32_t branch_ = 0;  // positions
    std::uint32_t leaf_ = 0;
    std::uint32_t offset_ = 0;
  };

  // The key must not be there.
  void insert(std::uint64_t key, Room room);
  // The key must be there.
  void erase(std::uint64_t key);
  void set_room(std::uint64_t key, Room room);

  // The least key that is not below this one and whose room covers the need.
  Cursor at_least(std::uint64_t key, Room need = {}) const;
  Cursor first() const { return at_least(0); }

  std::size_t size() const { return size_; }
  std::size_t bytes() const;  // of memory held

 private:
  static constexpr std::uint32_t kWidth = 64;
  struct Leaf {
    std::uint32_t size = 0;
    std::uint64_t keys[kWidth];
    Room rooms[kWidth];
  };
  struct Branch {
    std::uint32_t size = 0;
    std::uint64_t keys[kWidth];  // the first of each leaf
    Room rooms[kWidth];          // the most in each
    std::uint32_t leaves[kWidth];
  };
  struct Top {
    std::uint64_t key;  // the first of the branch
    Room room;
    std::uint32_t branch;
  };
  // Where a key stands, or would: positions in the directory, in the branch, in the leaf.
  struct Place {
    std::uint32_t branch = 0;
    std::uint32_t leaf = 0;
    std::uint32_t offset = 0;
  };

  const Branch& branch_at(std::size_t position) const { return branches_[top_[position].branch]; }
  Branch& branch_at(std::size_t position) { return branches_[top_[position].branch]; }
  Place place_of(std::uint64_t key) const;
  // The leaf's first key or its most room has changed, or not.
  void refresh(const Place& place);
  void split_leaf(const Place& place);
  void split_branch(std::uint32_t position);
  void thin_out(const Place& place);
  void remove_leaf(std::uint32_t branch, std::uint32_t leaf);
  std::uint32_t new_leaf();
  std::uint32_t new_branch();

  std::vector<Top> top_;
  std::vector<Branch> branches_;
  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> unused_branches_;
  std::vector<std::uint32_t> unused_leaves_;
  std::size_t size_ = 0;
};

}  // namespace cotenant::core
