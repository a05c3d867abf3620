#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/hash.hpp>

namespace tessera::detail {

/// A hash table from pairs of 32-bit numbers to a small value, with open addressing: a lookup reads
/// one cache line. No pair is (2^32 - 1, 2^32 - 1).
template <class Value>
class PairTable {
 public:
  explicit PairTable(size_t capacity = 0) {
    size_t size = 16;
    while (size < capacity * 2) size *= 2;
    slots_.resize(size);
  }

  /// Sets the value of a pair.
  void set(uint32_t a, uint32_t b, Value value) {
    if ((used_ + 1) * 2 > slots_.size()) grow();
    Slot& slot = slots_[slot_of(key_of(a, b))];
    used_ += slot.key == unused;
    slot = {key_of(a, b), value};
  }

  /// Returns the value of a pair; null if it has none.
  const Value* find(uint32_t a, uint32_t b) const {
    const Slot& slot = slots_[slot_of(key_of(a, b))];
    return slot.key == unused ? nullptr : &slot.value;
  }

 private:
  static constexpr uint64_t unused = ~uint64_t{0};
  struct Slot {
    uint64_t key = unused;
    Value value = {};
  };

  static uint64_t key_of(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

  /// Returns where a key is, or would be.
  size_t slot_of(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t at = mix(0, key) & mask;
    while (slots_[at].key != key && slots_[at].key != unused) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.key != unused) slots_[slot_of(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace tessera::detail
