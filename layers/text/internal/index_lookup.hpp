#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/layers/text/internal/token_counts.hpp>
#include <tessera/layers/text/internal/token_table.hpp>

namespace tessera::detail {

/// What a looked-up text becomes.
enum class TextOutput : uint8_t { index, one_hot, multi_hot, count, tf_idf };

/// An output by Keras' name: "int", "one_hot", "multi_hot", "count", "tf_idf". Throws ConfigError.
TextOutput text_output(const std::string& name);

/// Keras' weight of a token that some of all documents have: log(1 + documents / (1 + with_token)).
float idf_weight(int64_t documents, int64_t with_token);

/// Options of an IndexLookup, by Keras' names.
struct IndexLookupOptions {
  std::optional<int64_t> max_tokens = std::nullopt;      ///< most indices; no limit if absent
  int64_t num_oov_indices = 1;                           ///< indices of unknown tokens
  std::optional<std::string> mask_token = std::nullopt;  ///< token of index 0; none if absent
  std::string oov_token = "[UNK]";                       ///< what an unknown index becomes
  std::vector<std::string> vocabulary = {};              ///< learned if empty
  std::vector<double> idf_weights = {};                  ///< by token; only for "tf_idf"
  bool invert = false;                                   ///< looks up tokens of indices
  std::string output_mode = "int";                       ///< a name of text_output()
  bool pad_to_max_tokens = false;                        ///< gives max_tokens columns
};

/// A vocabulary with Keras' special tokens before it (its IndexLookup): index 0 is the mask in
/// "int" mode if there is one, then come the indices of unknown tokens, then the tokens. Looking up
/// is safe from several threads at a time.
class IndexLookup {
 public:
  /// What index() gives for the mask where it is left out.
  static constexpr int64_t masked = -1;

  /// Throws ConfigError for options that do not fit together, as set_vocabulary does.
  explicit IndexLookup(IndexLookupOptions options);

  const IndexLookupOptions& options() const { return options_; }
  TextOutput output() const { return output_; }
  bool has_vocabulary() const { return table_.size() > 0; }
  /// Whether the vocabulary is that of the options.
  bool given() const { return given_; }
  /// Whether the vocabulary can be written in a configuration too: JSON holds no bytes that are not
  /// UTF-8.
  bool in_config() const;
  /// Number of indices, special tokens included.
  int64_t vocabulary_size() const { return table_.size() + token_start(); }
  /// Columns of an output other than "int"; -1 if not known yet.
  int64_t depth() const;
  /// The tokens by index; without the special ones if asked.
  std::vector<std::string> vocabulary(bool include_special_tokens = true) const;
  /// Weights by index; none unless "tf_idf".
  const std::vector<float>& idf_weights() const { return idf_; }

  /// Replaces the vocabulary. It may begin with the special tokens, all or none. Throws ConfigError
  /// for none, a token twice, a special token among the others, more than max_tokens, weights in
  /// another mode than "tf_idf" or not one for each token.
  void set_vocabulary(const std::vector<std::string>& tokens, const std::vector<double>& weights);
  /// Learns the vocabulary, and weights log(1 + documents / (1 + documents with the token)).
  /// Throws ConfigError if nothing was counted.
  void learn(const TokenCounts& counts);

  /// The index of a token. Throws ConfigError for an unknown one if num_oov_indices is 0.
  int64_t index(std::string_view token) const {
    if (options_.mask_token && token == *options_.mask_token) return mask_index_;
    const int64_t number = table_.find(token);
    return number < 0 ? unknown_index(token) : token_start() + number;
  }
  /// The token of an index; oov_token for one that has none.
  std::string token(int64_t index) const;

 private:
  void check_options() const;
  void check_tokens(const std::vector<std::string>& all, int64_t first) const;
  int64_t oov_start() const { return mask_index_ == 0 ? 1 : 0; }
  int64_t token_start() const { return token_start_; }
  std::vector<std::string> special_tokens() const;
  int64_t unknown_index(std::string_view token) const;

  IndexLookupOptions options_;
  TextOutput output_;
  int64_t mask_index_;
  int64_t token_start_;
  bool given_ = false;
  TokenTable table_;
  std::vector<float> idf_;
};

}  // namespace tessera::detail
