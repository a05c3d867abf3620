#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// Numbers distinct texts 0, 1, 2, ... in order of insertion. Lookups are thread-safe.
class TokenTable {
 public:
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// Returns the text of a number; valid until the next insert().
  std::string_view operator[](int64_t number) const {
    const auto i = static_cast<size_t>(number);
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  /// Returns the number of a text, or -1.
  int64_t find(std::string_view token) const;
  /// Returns the number of a text, a new one if needed.
  int64_t insert(std::string_view token);

 private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Slot {
    uint32_t tag = 0;  ///< high half of the hash, which avoids most text comparisons
    uint32_t number = none;
  };
  /// Returns the slot that holds the text, or the free one where it belongs.
  size_t slot_of(std::string_view token, uint64_t hash) const;
  void grow();

  std::vector<Slot> slots_;  ///< open addressing, a power of two, at most half full
  std::string bytes_;        ///< all texts, concatenated
  std::vector<size_t> ends_;
};

}  // namespace tessera::detail
