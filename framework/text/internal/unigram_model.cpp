#include <algorithm>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/text/internal/token_model.hpp>
#include <tessera/framework/text/internal/token_trie.hpp>
#include <tessera/framework/text/internal/unicode.hpp>

namespace tessera::detail {
namespace {

/// How much less likely an unknown character is than any token, as in SentencePiece.
constexpr double unknown_penalty = 10;

/// Chooses the most probable sequence of tokens, whose scores are log probabilities (Viterbi).
class UnigramModel final : public TokenModel {
 public:
  UnigramModel(JsonObject& json, const Json& vocabulary) : TokenModel({}) {
    read_scores(vocabulary, json.path().key("vocab"));
    if (const auto id = json.take_optional<int64_t>("unk_id")) {
      if (*id < 0 || *id >= static_cast<int64_t>(scores_.size())) {
        json_fail(*id, json.path().key("unk_id"), "an index of the vocabulary");
      }
      unknown_ = static_cast<int32_t>(*id);
    }
    if (json.take_or("byte_fallback", false)) byte_tokens_ = byte_tokens(vocabulary_);
    for (const char* key : {"alpha", "nbest_size"}) {
      if (json.take_optional<Json>(key)) {
        json_fail(Json(key), json.path().key(key), "null: sampling is not implemented");
      }
    }
    vocabulary_.for_each([&](std::string_view token, int32_t id) { trie_.add(token, id); });
  }

  void tokenize(std::string_view piece, std::vector<int32_t>& ids) const override {
    if (piece.empty()) return;
    thread_local std::vector<Best> best;
    find_best(piece, best);
    thread_local std::vector<TokenSpan> reversed;
    reversed.clear();
    for (size_t end = piece.size(); end > 0;) {
      const Best& last = best[end];
      const bool is_unknown = unknown_ && last.id == *unknown_;
      // Neighbouring unknown characters are one token.
      if (is_unknown && !reversed.empty() && reversed.back().is_unknown) {
        reversed.back().begin = last.begin;
      } else {
        reversed.push_back({last.begin, end, last.id, is_unknown});
      }
      end = last.begin;
    }
    std::reverse(reversed.begin(), reversed.end());
    for (const TokenSpan& token : reversed) {
      if (token.is_unknown) {
        append_unknown(piece.substr(token.begin, token.end - token.begin), ids);
      } else {
        ids.push_back(token.id);
      }
    }
  }

 private:
  /// The best way to reach a byte: its score, and its last token.
  struct Best {
    double score = 0;
    size_t begin = none;
    int32_t id = 0;
  };
  struct TokenSpan {
    size_t begin;
    size_t end;
    int32_t id;
    bool is_unknown;
  };
  static constexpr size_t none = SIZE_MAX;

  void read_scores(const Json& vocabulary, const JsonPath& path) {
    if (!vocabulary.is_array() || vocabulary.empty()) {
      json_fail(vocabulary, path, "a list of tokens with their scores");
    }
    for (size_t i = 0; i < vocabulary.size(); ++i) {
      const Json& entry = vocabulary[i];
      if (!entry.is_array() || entry.size() != 2) {
        json_fail(entry, path.index(i), "a token and its score");
      }
      vocabulary_.add(json_as<std::string>(entry[0], path.index(i).index(0)),
                      static_cast<int32_t>(i));
      scores_.push_back(json_as<double>(entry[1], path.index(i).index(1)));
    }
    unknown_score_ = *std::min_element(scores_.begin(), scores_.end()) - unknown_penalty;
  }

  void find_best(std::string_view piece, std::vector<Best>& best) const {
    best.assign(piece.size() + 1, {});
    const auto offer = [&](size_t end, double score, size_t begin, int32_t id) {
      Best& at_end = best[end];
      if (at_end.begin == none || score > at_end.score) at_end = {score, begin, id};
    };
    for (size_t begin = 0; begin < piece.size();) {
      const double so_far = best[begin].score;
      const size_t length = length_after(piece[begin]);
      bool has_character = false;
      std::optional<uint32_t> node = TokenTrie::root;
      for (size_t i = begin; i < piece.size(); ++i) {
        node = trie_.next(*node, piece[i]);
        if (!node) break;
        const int32_t id = trie_.number(*node);
        if (id == TokenTrie::none) continue;
        offer(i + 1, scores_[static_cast<size_t>(id)] + so_far, begin, id);
        has_character = has_character || i + 1 - begin == length;
      }
      if (!has_character) {
        offer(begin + length, unknown_score_ + so_far, begin, required_unknown());
      }
      begin += length;
    }
  }

  int32_t required_unknown() const {
    if (unknown_) return *unknown_;
    throw ConfigError("Unigram", "a vocabulary with an \"unk_id\"", "an unknown character",
                      "set \"unk_id\" in the model");
  }

  /// Appends the tokens of a run of unknown characters, which may itself be a token.
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
    if (const auto id = vocabulary_.id(text)) {
      ids.push_back(*id);
    } else if (byte_tokens_.empty() || !append_byte_tokens(byte_tokens_, text, ids)) {
      ids.push_back(*unknown_);
    }
  }

  std::optional<int32_t> unknown_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  TokenTrie trie_;
  std::vector<int32_t> byte_tokens_;  ///< empty without byte_fallback
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram_model(JsonObject& json, const Json& vocabulary) {
  return std::make_unique<UnigramModel>(json, vocabulary);
}

}  // namespace tessera::detail
