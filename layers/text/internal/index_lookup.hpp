#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/layers/text/internal/token_counts.hpp>
#include <tessera/layers/text/internal/token_table.hpp>

namespace tessera::detail {

/// Encoding of looked-up tokens.
enum class TokenEncoding : uint8_t { index, one_hot, multi_hot, count, tf_idf };

/// Parses Keras' name: "int", "one_hot", "multi_hot", "count", "tf_idf". Throws ConfigError.
TokenEncoding token_encoding(const std::string& name);

/// Returns Keras' weight of a token: log(1 + documents / (1 + documents with the token)).
float idf_weight(int64_t documents, int64_t with_token);

/// Options of an IndexLookup, by Keras' names.
struct IndexLookupOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  ///< maximum vocabulary size (default: none)
  int64_t num_oov_indices = 1;                       ///< number of indices for unknown tokens
  std::optional<std::string> mask_token = std::nullopt;  ///< token of index 0 (default: none)
  std::string oov_token = "[UNK]";                       ///< result for an unknown index
  std::vector<std::string> vocabulary = {};              ///< learned if empty
  std::vector<double> idf_weights = {};                  ///< weight of each token; "tf_idf" only
  bool invert = false;                                   ///< whether to map indices to tokens
  std::string output_mode = "int";                       ///< a name of token_encoding()
  bool pad_to_max_tokens = false;                        ///< whether to return max_tokens columns
};

/// A vocabulary preceded by Keras' special tokens (its IndexLookup): in "int" mode index 0 is the
/// mask if there is one; then come the indices of unknown tokens, then the tokens. Lookups are
/// thread-safe.
class IndexLookup {
 public:
  /// Result of index() for the mask in modes that ignore it.
  static constexpr int64_t masked = -1;

  /// Throws ConfigError for options that do not fit together, as set_vocabulary does.
  explicit IndexLookup(IndexLookupOptions options);

  const IndexLookupOptions& options() const { return options_; }
  TokenEncoding output() const { return output_; }
  bool has_vocabulary() const { return table_.size() > 0; }
  /// Whether the options gave the vocabulary.
  bool from_options() const { return from_options_; }
  /// Whether the options gave the vocabulary and a configuration can hold it: JSON holds UTF-8
  /// only.
  bool in_config() const;
  /// Returns the number of indices, including special tokens.
  int64_t vocabulary_size() const { return table_.size() + token_start(); }
  /// Returns the columns of an output other than "int"; -1 if not known yet.
  int64_t depth() const;
  /// Returns the tokens by index.
  std::vector<std::string> vocabulary(bool include_special_tokens = true) const;
  /// Returns the weights by index; none unless "tf_idf".
  const std::vector<float>& idf_weights() const { return idf_; }

  /// Replaces the vocabulary. `tokens` may begin with all special tokens. Throws ConfigError for no
  /// tokens, a duplicate, a special token elsewhere, more than max_tokens, weights in a mode other
  /// than "tf_idf", or not one weight for each token.
  void set_vocabulary(const std::vector<std::string>& tokens, const std::vector<double>& weights);
  /// Learns the vocabulary, and weights log(1 + documents / (1 + documents with the token)).
  /// Throws ConfigError if nothing was counted.
  void learn(const TokenCounts& counts);

  /// Returns the index of a token. Throws ConfigError for an unknown one if num_oov_indices is 0.
  int64_t index(std::string_view token) const {
    if (options_.mask_token && token == *options_.mask_token) return mask_index_;
    const int64_t number = table_.find(token);
    return number < 0 ? unknown_index(token) : token_start() + number;
  }
  /// Returns the token of an index; oov_token for an unknown index.
  std::string token(int64_t index) const;

 private:
  void check_options() const;
  void check_tokens(const std::vector<std::string>& all, int64_t first) const;
  int64_t oov_start() const { return mask_index_ == 0 ? 1 : 0; }
  int64_t token_start() const { return token_start_; }
  std::vector<std::string> special_tokens() const;
  int64_t unknown_index(std::string_view token) const;

  IndexLookupOptions options_;
  TokenEncoding output_;
  int64_t mask_index_;
  int64_t token_start_;
  bool from_options_ = false;
  TokenTable table_;
  std::vector<float> idf_;
};

}  // namespace tessera::detail
