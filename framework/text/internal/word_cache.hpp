#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

/// The tokens of the words seen last, for one thread. It is emptied when it is full.
class WordCache {
 public:
  static constexpr size_t max_word_bytes = 48;

  /// Appends the tokens of a word to `ids`; make(word, ids) does so if the word is new.
  template <class Make>
  void append(std::string_view word, std::vector<int32_t>& ids, const Make& make) {
    if (word.size() > max_word_bytes) {
      make(word, ids);
      return;
    }
    const uint64_t hash = std::hash<std::string_view>()(word);
    size_t at = hash & (slots - 1);
    while (entries_[at].used) {
      const Entry& entry = entries_[at];
      if (entry.hash == hash && text_of(entry) == word) {
        const auto begin = ids_.begin() + static_cast<std::ptrdiff_t>(entry.ids);
        ids.insert(ids.end(), begin, begin + entry.id_count);
        return;
      }
      at = (at + 1) & (slots - 1);
    }
    const size_t before = ids.size();
    make(word, ids);
    keep(at, hash, word, std::span(ids).subspan(before));
  }

 private:
  static constexpr size_t slots = 1 << 16;
  struct Entry {
    uint64_t hash = 0;
    uint32_t text = 0;
    uint32_t ids = 0;
    uint16_t text_size = 0;
    uint16_t id_count = 0;
    bool used = false;
  };

  std::string_view text_of(const Entry& entry) const {
    return std::string_view(texts_).substr(entry.text, entry.text_size);
  }

  void keep(size_t at, uint64_t hash, std::string_view word, std::span<const int32_t> ids) {
    if (count_ == slots / 2) {
      entries_.assign(slots, {});
      texts_.clear();
      ids_.clear();
      count_ = 0;
      at = hash & (slots - 1);
    }
    entries_[at] = {hash,
                    static_cast<uint32_t>(texts_.size()),
                    static_cast<uint32_t>(ids_.size()),
                    static_cast<uint16_t>(word.size()),
                    static_cast<uint16_t>(ids.size()),
                    true};
    texts_ += word;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++count_;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(slots);
  std::string texts_;
  std::vector<int32_t> ids_;
  size_t count_ = 0;
};

}  // namespace tessera::detail
