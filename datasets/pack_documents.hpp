#pragma once

#include <cstdint>
#include <vector>

#include <tessera/framework/data/tensor_dataset.hpp>

namespace tessera {

/// A document for pack_documents().
struct TokenDocument {
  std::vector<int64_t> tokens;  ///< at least two
  int64_t prompt = 0;           ///< number of first tokens that a model does not learn to predict
  /// Whether a model learns to predict each token, those of `prompt` excepted (default: all). For
  /// chats, of which it learns the answers.
  std::vector<bool> is_learned = {};
};

/// The options of pack_documents().
struct PackingOptions {
  int64_t length = 0;      ///< steps of a row (required)
  int64_t padding_id = 0;  ///< token id of the steps behind the last document of a row
};

/// Packs documents into rows for next-token prediction. x is token ids and document ids, y the next
/// tokens, all int64 (rows, length); sample weights, float32 (rows, length), are 1 where a next
/// token is learned: part of a document and not of its prompt. TransformerBlock and
/// PositionEmbedding take the document ids: 1, 2, … in each row, and 0 for padding.
///
/// A document of n tokens takes n - 1 steps. One of more than `length` steps is split into rows of
/// its own, and its last piece is packed like a short document. Each document, in the given order,
/// is added to the fullest row that has room for it.
///
///     const TensorDataset rows = pack_documents({{{5, 8, 2}}, {{7, 1, 4, 2}, 2}}, {.length = 8});
///
/// The losses' reduction "mean_with_sample_weight" averages over the tokens that count. Throws
/// ConfigError for a length below 1, a document of less than two tokens, a prompt that is negative
/// or longer than its document, and an is_learned of another length.
TensorDataset pack_documents(const std::vector<TokenDocument>& documents,
                             const PackingOptions& options);

}  // namespace tessera
