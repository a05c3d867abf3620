#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// Numbers different texts 0, 1, 2, ... in the order in which they come. Looking up is safe from
/// several threads at a time.
class TokenTable {
 public:
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// The text of a number; valid until the next insert().
  std::string_view operator[](int64_t number) const {
    const auto i = static_cast<size_t>(number);
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  /// The number of a text, -1 if it has none.
  int64_t find(std::string_view token) const;
  /// The number of a text, a new one if it had none.
  int64_t insert(std::string_view token);

 private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Slot {
    uint32_t tag = 0;  ///< high half of the hash, to skip most comparisons
    uint32_t number = none;
  };
  /// The slot that holds the text, or the free one where it belongs.
  size_t slot_of(std::string_view token, uint64_t hash) const;
  void grow();

  std::vector<Slot> slots_;  ///< open addressing, a power of two, at most half full
  std::string bytes_;        ///< all texts, one after the other
  std::vector<size_t> ends_;
};

}  // namespace tessera::detail
