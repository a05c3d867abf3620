#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/text/internal/pair_table.hpp>
#include <tessera/framework/text/internal/token_model.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

/// Merges the pair of neighbours with the lowest rank until none is left (byte-pair encoding).
class BytePairModel final : public TokenModel {
 public:
  BytePairModel(JsonObject& json, const Json& vocabulary, const Json& merges)
      : TokenModel(Vocabulary(vocabulary, json.path().key("vocab"))),
        unknown_(take_token(json, "unk_token", vocabulary_)),
        prefix_(json.take_or<std::string>("continuing_subword_prefix", "")),
        suffix_(json.take_or<std::string>("end_of_word_suffix", "")),
        fuses_unknown_(json.take_or("fuse_unk", false)),
        ignores_merges_(json.take_or("ignore_merges", false)) {
    if (const auto dropout = json.take_optional<double>("dropout"); dropout.value_or(0) != 0) {
      json_fail(*dropout, json.path().key("dropout"), "0: random merges are not implemented");
    }
    if (json.take_or("byte_fallback", false)) byte_tokens_ = byte_tokens(vocabulary_);
    read_merges(merges, json.path().key("merges"));
    for (size_t byte = 0; byte < 256; ++byte) {
      std::string token;
      append_utf8(token, character_of_byte(static_cast<unsigned char>(byte)));
      token_of_byte_[byte] = vocabulary_.id(token).value_or(-1);
    }
  }

  bool reads_bytes() const override {
    return prefix_.empty() && suffix_.empty() && byte_tokens_.empty() && !unknown_;
  }

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override {
    if (ignores_merges_) {
      if (const auto id = whole_token(piece)) {
        ids.push_back(*id);
        return;
      }
    }
    thread_local std::vector<Symbol> symbols;
    symbols.clear();
    if (byte_level_) {
      for (const char c : piece) {
        const int32_t id = token_of_byte_[static_cast<unsigned char>(c)];
        if (id >= 0) add_symbol(symbols, id);
      }
    } else {
      add_characters(piece, symbols);
    }
    merge(symbols);
    for (int32_t i = symbols.empty() ? -1 : 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
      ids.push_back(symbols[static_cast<size_t>(i)].id);
    }
  }

 private:
  struct Merge {
    int32_t rank = 0;
    int32_t id = 0;
  };
  /// A token of the piece so far, in a doubly linked list; id -1: it was merged into the one
  /// before.
  struct Symbol {
    int32_t id;
    int32_t before;
    int32_t next;
  };
  /// A pair that may be merged, unless one of the two has changed since.
  struct Candidate {
    int32_t rank;
    int32_t at;
    int32_t id;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void read_merges(const Json& merges, const JsonPath& path) {
    if (!merges.is_array()) json_fail(merges, path, "a list of pairs");
    merges_ = PairTable<Merge>(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
      const auto [left, right] = pair_of(merges[i], path.index(i));
      if (!right.starts_with(prefix_)) {
        json_fail(merges[i], path.index(i), "a second token with the prefix " + in_quotes(prefix_));
      }
      const auto a = vocabulary_.id(left);
      const auto b = vocabulary_.id(right);
      const auto both = vocabulary_.id(left + right.substr(prefix_.size()));
      if (!a || !b || !both) {
        json_fail(merges[i], path.index(i), "a pair that makes a token of the vocabulary");
      }
      merges_.set(static_cast<uint32_t>(*a), static_cast<uint32_t>(*b),
                  {static_cast<int32_t>(i), *both});
    }
  }

  static std::pair<std::string, std::string> pair_of(const Json& json, const JsonPath& path) {
    if (json.is_array() && json.size() == 2) {
      return {json_as<std::string>(json[0], path.index(0)),
              json_as<std::string>(json[1], path.index(1))};
    }
    const auto text = json_as<std::string>(json, path);
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
      json_fail(json, path, "two tokens with a space between them");
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }

  /// Returns the token that the whole piece is.
  std::optional<int32_t> whole_token(std::string_view piece) const {
    if (!byte_level_) return vocabulary_.id(piece);
    std::string text;
    for (const char c : piece) {
      append_utf8(text, character_of_byte(static_cast<unsigned char>(c)));
    }
    return vocabulary_.id(text);
  }

  static void add_symbol(std::vector<Symbol>& symbols, int32_t id) {
    const auto at = static_cast<int32_t>(symbols.size());
    if (at > 0) symbols.back().next = at;
    symbols.push_back({id, at - 1, -1});
  }

  void add_characters(std::string_view piece, std::vector<Symbol>& symbols) const {
    std::vector<int32_t> bytes;
    bool after_unknown = false;
    for (size_t at = 0; at < piece.size();) {
      const size_t length = length_after(piece[at]);
      const std::string_view character = piece.substr(at, length);
      std::string token;
      if (at > 0) token = prefix_;
      token += character;
      at += length;
      if (at == piece.size()) token += suffix_;
      if (const auto id = vocabulary_.id(token)) {
        add_symbol(symbols, *id);
        after_unknown = false;
        continue;
      }
      bytes.clear();
      if (!byte_tokens_.empty() && append_byte_tokens(byte_tokens_, token, bytes)) {
        for (const int32_t id : bytes) add_symbol(symbols, id);
        after_unknown = false;
      } else if (unknown_) {
        if (!(after_unknown && fuses_unknown_)) add_symbol(symbols, *unknown_);
        after_unknown = true;
      }
    }
  }

  void merge(std::vector<Symbol>& symbols) const {
    thread_local std::vector<Candidate> heap;
    heap.clear();
    const auto push = [&](int32_t at) {
      if (at < 0) return;
      const Symbol& symbol = symbols[static_cast<size_t>(at)];
      if (symbol.next < 0) return;
      const auto right = static_cast<uint32_t>(symbols[static_cast<size_t>(symbol.next)].id);
      if (const Merge* found = merges_.find(static_cast<uint32_t>(symbol.id), right)) {
        heap.push_back({found->rank, at, found->id});
        std::push_heap(heap.begin(), heap.end());
      }
    };
    for (int32_t at = 0; at + 1 < static_cast<int32_t>(symbols.size()); ++at) push(at);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      const Candidate best = heap.back();
      heap.pop_back();
      Symbol& left = symbols[static_cast<size_t>(best.at)];
      if (left.id < 0 || left.next < 0) continue;
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      const Merge* now =
          merges_.find(static_cast<uint32_t>(left.id), static_cast<uint32_t>(right.id));
      if (!now || now->id != best.id) continue;
      left.id = best.id;
      right.id = -1;
      left.next = right.next;
      if (left.next >= 0) symbols[static_cast<size_t>(left.next)].before = best.at;
      push(left.before);
      push(best.at);
    }
  }

  std::optional<int32_t> unknown_;
  std::string prefix_;
  std::string suffix_;
  bool fuses_unknown_;
  bool ignores_merges_;
  PairTable<Merge> merges_;
  std::vector<int32_t> byte_tokens_;  ///< empty without byte_fallback
  int32_t token_of_byte_[256];
};

}  // namespace

std::unique_ptr<TokenModel> make_byte_pair_model(JsonObject& json, const Json& vocabulary,
                                                 const Json& merges) {
  return std::make_unique<BytePairModel>(json, vocabulary, merges);
}

}  // namespace tessera::detail
