#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of IntegerLookup.
struct IntegerLookupOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  ///< most indices; no limit if absent
  int64_t num_oov_indices = 1;                       ///< indices of unknown numbers
  std::optional<int64_t> mask_token = std::nullopt;  ///< number of index 0; none if absent
  int64_t oov_token = -1;                            ///< what an unknown index becomes
  std::vector<int64_t> vocabulary = {};              ///< numbers; adapt() learns them if empty
  std::vector<double> idf_weights = {};              ///< one for each number; only for "tf_idf"
  bool invert = false;                               ///< indices to numbers
  std::string output_mode = "int";  ///< "int", "one_hot", "multi_hot", "count" or "tf_idf"
  bool pad_to_max_tokens = false;   ///< gives max_tokens columns, not as many as indices
  bool sparse = false;              ///< there are no sparse tensors: only false
  /// What spreads unknown numbers over several indices: "floormod", the remainder, or "farmhash",
  /// a hash of the digits.
  std::string oov_method = "floormod";
  std::vector<int64_t> salt = {};  ///< key of the hash, two numbers or one for both
  std::string name = "";           ///< first part of the weights' paths
  std::string dtype = "";          ///< policy; the default one if empty
  bool trainable = true;           ///< whether training changes the weights
};

/// Whole numbers as indices of a vocabulary, and back (keras.layers.IntegerLookup). Index 0 is the
/// mask in "int" mode if there is one; num_oov_indices for unknown numbers follow, then the
/// vocabulary. Unlike StringLookup it is a layer of models.
///
/// Shape: "int" and `invert` (batch, …) -> (batch, …) int64; other modes as CategoryEncoding, with
/// as many columns as indices, or max_tokens with pad_to_max_tokens. Numbers are taken as whole
/// ones.
/// Communication: none in "int" and "one_hot" mode; in others while the last axis is not sharded.
///
///     IntegerLookup lookup({.max_tokens = 1000});
///     lookup.adapt(labels);
class IntegerLookup : public LayerHandle {
 public:
  /// Throws ConfigError for options that do not fit together.
  explicit IntegerLookup(const IntegerLookupOptions& options = {});

  /// Learns the vocabulary, all numbers that occur or the max_tokens most frequent, and forgets the
  /// one before; in "tf_idf" mode weights come from how many rows have a number. Throws StateError
  /// if one was given by the options, ConfigError for no numbers.
  void adapt(const at::Tensor& data) const;
  /// Learns it from the first input of a dataset. Every process reads all.
  void adapt(const DatasetHandle& data) const;
  /// Forgets what was counted, before an adapt() in steps.
  void reset_state() const;
  /// Counts more numbers, in an adapt() in steps.
  void update_state(const at::Tensor& data) const;
  /// Makes the vocabulary of what was counted, after an adapt() in steps.
  void finalize_state() const;

  /// The numbers by index, the mask and unknown number included unless asked otherwise.
  std::vector<int64_t> get_vocabulary(bool include_special_tokens = true) const;
  /// Number of indices, those of the mask and of unknown numbers included.
  int64_t vocabulary_size() const;
  /// Replaces the vocabulary; numbers may begin with the special ones. "tf_idf" needs a weight for
  /// each. Throws ConfigError.
  void set_vocabulary(const std::vector<int64_t>& tokens,
                      const std::vector<double>& idf_weights = {}) const;
};

}  // namespace tessera
