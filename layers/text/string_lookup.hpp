#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/layers/text/lookup_handle.hpp>

namespace tessera {

/// Options of StringLookup.
struct StringLookupOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  ///< most indices; no limit if absent
  int64_t num_oov_indices = 1;  ///< indices of unknown tokens, spread by their Fingerprint64
  std::optional<std::string> mask_token = std::nullopt;  ///< token of index 0; none if absent
  std::string oov_token = "[UNK]";                       ///< what an unknown index becomes
  std::vector<std::string> vocabulary = {};              ///< tokens; adapt() learns them if empty
  std::vector<double> idf_weights = {};                  ///< one for each token; only for "tf_idf"
  bool invert = false;                                   ///< indices to tokens
  std::string output_mode = "int";  ///< "int", "one_hot", "multi_hot", "count" or "tf_idf"
  bool pad_to_max_tokens = false;   ///< gives max_tokens columns, not as many as indices
  bool sparse = false;              ///< there are no sparse tensors: only false
  std::string encoding = "utf-8";   ///< the only one
  std::string name = "";            ///< first part of the weights' paths
  std::string dtype = "";           ///< policy; the default one if empty
  bool trainable = true;            ///< whether training changes the weights
};

/// Tokens as indices of a vocabulary, and back (keras.layers.StringLookup). Index 0 is the mask in
/// "int" mode if there is one; num_oov_indices for unknown tokens follow, then the vocabulary. It
/// stands before a model, for texts are no tensors.
///
/// Shape: n tokens -> "int" int64 [n], "one_hot" float32 [n, depth], other modes [depth] for all of
/// them as one document; transform() takes each text for one token, and gives "int" int64 [n, 1],
/// else float32 [n, depth]. The depth is the number of indices, or max_tokens with
/// pad_to_max_tokens.
/// Communication: none.
///
///     StringLookup lookup({.vocabulary = {"red", "green"}});
///     lookup({"green", "blue"});   // 2, 0
class StringLookup : public LookupHandle {
 public:
  /// Throws ConfigError for options that do not fit together.
  explicit StringLookup(const StringLookupOptions& options = {});
  /// Makes the layer of Keras' configuration. Throws ConfigError.
  static StringLookup from_config(JsonObject& config);

  using LookupHandle::adapt;
  void adapt(std::initializer_list<const char*> tokens) const { adapt(TextDataHandle(tokens)); }
  /// Learns from documents of several tokens; in "tf_idf" mode weights come from how many of them
  /// have a token.
  void adapt(const std::vector<std::vector<std::string>>& documents) const;

  using LookupHandle::operator();
  /// Looks n tokens up: "int" int64 [n]; "one_hot" float32 [n, depth]; else of all as one document
  /// [depth]. Throws StateError without a vocabulary, ConfigError for an unknown token if
  /// num_oov_indices is 0.
  at::Tensor operator()(const std::vector<std::string>& tokens) const;
  at::Tensor operator()(std::initializer_list<const char*> tokens) const;
  /// Looks n documents of m tokens up: "int" int64 [n, m]; "one_hot" float32 [n, m, depth], without
  /// m if it is 1; else [n, depth], of any lengths. Throws ShapeError for lengths that differ.
  at::Tensor operator()(const std::vector<std::vector<std::string>>& documents) const;
  /// The token of each index, with `invert`, in row-major order; oov_token for one that has none.
  std::vector<std::string> operator()(const at::Tensor& indices) const;
};

}  // namespace tessera
