#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <tessera/framework/text/internal/pair_table.hpp>

namespace tessera::detail {

/// Texts and their numbers, searched byte by byte.
class TokenTrie {
 public:
  static constexpr uint32_t root = 0;
  static constexpr int32_t none = -1;

  /// Adds a text; its last number counts.
  void add(std::string_view text, int32_t number) {
    uint32_t node = root;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (const uint32_t* next = next_.find(node, byte)) {
        node = *next;
      } else {
        numbers_.push_back(none);
        const auto made = static_cast<uint32_t>(numbers_.size() - 1);
        next_.set(node, byte, made);
        node = made;
      }
    }
    numbers_[node] = number;
  }

  /// Returns the node behind a byte; nothing if no text goes on like that.
  std::optional<uint32_t> next(uint32_t node, char c) const {
    const uint32_t* found = next_.find(node, static_cast<unsigned char>(c));
    return found ? std::optional(*found) : std::nullopt;
  }
  /// Returns the number of the text that ends at a node; `none` if none does.
  int32_t number(uint32_t node) const { return numbers_[node]; }
  /// Returns the node at the end of a text; nothing if no text begins with it.
  std::optional<uint32_t> find(std::string_view text) const {
    std::optional<uint32_t> node = root;
    for (const char c : text) {
      node = next(*node, c);
      if (!node) break;
    }
    return node;
  }

 private:
  PairTable<uint32_t> next_;
  std::vector<int32_t> numbers_ = {none};
};

}  // namespace tessera::detail
