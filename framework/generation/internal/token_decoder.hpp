#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/generation/generate.hpp>
#include <tessera/framework/nn/key_value_cache.hpp>
#include <tessera/framework/training/internal/recorded_calls.hpp>

namespace tessera::detail {

/// The options of a TokenDecoder.
struct DecoderOptions {
  int64_t max_new_tokens = 1;  ///< maximum number of tokens that are added to a row
  std::optional<int64_t> max_context = std::nullopt;      ///< see GenerateOptions
  std::optional<int64_t> vocabulary_size = std::nullopt;  ///< see GenerateOptions
};

/// Rows of tokens that grow, and the model's logits behind them: a KeyValueCache and the calls that
/// fill it. Calls on one further token are captured and replayed. A model with stages predicts
/// whole rows instead.
class TokenDecoder {
 public:
  /// Throws ConfigError for a row without tokens.
  TokenDecoder(const ModelHandle& model, std::vector<TokenIds> rows, const DecoderOptions& options);

  /// Returns the logits of each row's next token, (rows, vocabulary), float64 on the host. Calls
  /// the model on the tokens that are not in the cache yet. Collective.
  at::Tensor next_logits();
  /// Returns these logits by a call on all tokens, without the cache.
  at::Tensor uncached_logits() const;
  void append(int64_t row, int64_t token) { rows_[size_t(row)].push_back(token); }
  /// Replaces each row r by row `rows[r]`.
  void select_rows(const std::vector<int64_t>& rows);
  const std::vector<TokenIds>& rows() const { return rows_; }
  const KeyValueCache& cache() const { return *cache_; }
  /// Returns how many calls on one further token were eager, captured and replayed: of a compiled
  /// model, since compile().
  StepRecords records() const { return calls_.records(); }

 private:
  /// Tokens of a call, (rows, T) row by row, and the column of each row whose logits count; -1:
  /// none.
  struct Columns {
    std::vector<int64_t> tokens = {}, last = {};
    int64_t count = 0;
  };
  /// Calls the model and writes the logits of last columns into `logits`, which it makes.
  void call(const Columns& columns, const std::shared_ptr<KeyValueCache>& cache,
            at::Tensor& logits) const;
  /// Returns the model's outputs for tokens (rows, T).
  std::vector<DTensor> outputs(const DTensor& tokens,
                               const std::shared_ptr<KeyValueCache>& cache) const;
  at::Tensor predicted_logits() const;
  /// Returns the last tokens of each row, padded on the right to `count` columns.
  Columns last_columns(int64_t count) const;
  bool exceeds_context() const;

  ModelHandle model_;
  mutable RecordedCalls calls_;
  LayoutMap layouts_;
  std::vector<TokenIds> rows_;
  DecoderOptions options_;
  std::shared_ptr<KeyValueCache> cache_;
  std::vector<int64_t> cached_;  ///< how many tokens of each row are in the cache
};

/// Throws ConfigError unless the model's logits of a second token are the same with a cache and
/// without one. `token`: any token id.
void check_continues(const ModelHandle& model, int64_t token);

}  // namespace tessera::detail
