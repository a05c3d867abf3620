#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of IntegerLookup.
struct IntegerLookupOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  ///< maximum vocabulary size (default: none)
  int64_t num_oov_indices = 1;                       ///< number of indices for unknown numbers
  std::optional<int64_t> mask_token = std::nullopt;  ///< number of index 0 (default: none)
  int64_t oov_token = -1;                            ///< result for an unknown index
  std::vector<int64_t> vocabulary = {};              ///< numbers; adapt() learns them if empty
  std::vector<double> idf_weights = {};              ///< weight of each number; "tf_idf" only
  bool invert = false;                               ///< whether to map indices to numbers
  std::string output_mode = "int";  ///< "int", "one_hot", "multi_hot", "count" or "tf_idf"
  bool pad_to_max_tokens = false;   ///< whether to return max_tokens columns
  bool sparse = false;              ///< must be false: there are no sparse tensors
  /// How unknown numbers are distributed over several indices: "floormod" (the remainder) or
  /// "farmhash" (a hash of the digits).
  std::string oov_method = "floormod";
  std::vector<int64_t> salt = {};  ///< key of the hash, two numbers or one for both
  std::string name = "";           ///< first component of the weights' paths
  std::string dtype = "";          ///< dtype policy (default: the global policy)
  bool trainable = true;           ///< whether training changes the weights
};

/// Maps integers to indices of a vocabulary, and back (keras.layers.IntegerLookup). In "int" mode
/// index 0 is the mask if there is one; num_oov_indices for unknown numbers follow, then the
/// vocabulary. Unlike StringLookup it can be part of a model.
///
/// Shape: "int" and `invert` (batch, …) -> (batch, …) int64; other modes as CategoryEncoding, with
/// one column for each index, or max_tokens with pad_to_max_tokens. Numbers are truncated to
/// integers.
/// Communication: none, unless the last axis is sharded in a mode other than "int" and "one_hot".
///
///     IntegerLookup lookup({.max_tokens = 1000});
///     lookup.adapt(labels);
class IntegerLookup : public LayerHandle {
 public:
  /// Throws ConfigError for options that do not fit together.
  explicit IntegerLookup(const IntegerLookupOptions& options = {});

  /// Learns the vocabulary, all numbers that occur or the max_tokens most frequent; replaces the
  /// earlier one. In "tf_idf" mode weights depend on how many rows contain a number. Throws
  /// StateError if the options give a vocabulary, ConfigError for no numbers.
  void adapt(const at::Tensor& data) const;
  /// Learns from the first input of a dataset. Every process reads all rows.
  void adapt(const DatasetHandle& data) const;
  /// Discards the counts, at the start of an adapt() in steps.
  void reset_state() const;
  /// Counts more numbers during an adapt() in steps.
  void update_state(const at::Tensor& data) const;
  /// Makes the vocabulary from the counts, at the end of an adapt() in steps.
  void finalize_state() const;

  /// Returns the numbers by index; `include_special_tokens`: with the mask and oov_token.
  std::vector<int64_t> get_vocabulary(bool include_special_tokens = true) const;
  /// Returns the number of indices, including those of the mask and unknown numbers.
  int64_t vocabulary_size() const;
  /// Replaces the vocabulary; `tokens` may begin with the special ones. "tf_idf" needs a weight for
  /// each. Throws ConfigError.
  void set_vocabulary(const std::vector<int64_t>& tokens,
                      const std::vector<double>& idf_weights = {}) const;
};

}  // namespace tessera
