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
  std::optional<int64_t> max_tokens = std::nullopt;  ///< maximum vocabulary size (default: none)
  int64_t num_oov_indices = 1;  ///< indices for unknown tokens, chosen by Fingerprint64
  std::optional<std::string> mask_token = std::nullopt;  ///< token of index 0 (default: none)
  std::string oov_token = "[UNK]";                       ///< result for an unknown index
  std::vector<std::string> vocabulary = {};              ///< tokens; adapt() learns them if empty
  std::vector<double> idf_weights = {};                  ///< weight of each token; "tf_idf" only
  bool invert = false;                                   ///< whether to map indices to tokens
  std::string output_mode = "int";  ///< "int", "one_hot", "multi_hot", "count" or "tf_idf"
  bool pad_to_max_tokens = false;   ///< whether to return max_tokens columns
  bool sparse = false;              ///< must be false: there are no sparse tensors
  std::string encoding = "utf-8";   ///< must be "utf-8"
  std::string name = "";            ///< first component of the weights' paths
  std::string dtype = "";           ///< dtype policy (default: the global policy)
  bool trainable = true;            ///< whether training changes the weights
};

/// Maps tokens to indices of a vocabulary, and back (keras.layers.StringLookup). In "int" mode
/// index 0 is the mask if there is one; num_oov_indices for unknown tokens follow, then the
/// vocabulary. It runs before a model, since texts are no tensors.
///
/// Shape: n tokens -> "int" int64 [n], "one_hot" float32 [n, depth], other modes [depth] for all of
/// them as one document; transform() takes each text for one token and returns "int" int64 [n, 1],
/// otherwise float32 [n, depth]. depth is the number of indices, or max_tokens with
/// pad_to_max_tokens.
/// Communication: none.
///
///     StringLookup lookup({.vocabulary = {"red", "green"}});
///     lookup({"green", "blue"});   // 2, 0
class StringLookup : public LookupHandle {
 public:
  /// Throws ConfigError for options that do not fit together.
  explicit StringLookup(const StringLookupOptions& options = {});
  /// Makes a layer from Keras' configuration. Throws ConfigError.
  static StringLookup from_config(JsonObject& config);

  using LookupHandle::adapt;
  void adapt(std::initializer_list<const char*> tokens) const { adapt(TextDataHandle(tokens)); }
  /// Learns from documents of several tokens; in "tf_idf" mode weights depend on how many documents
  /// contain a token.
  void adapt(const std::vector<std::vector<std::string>>& documents) const;

  using LookupHandle::operator();
  /// Looks n tokens up: "int" int64 [n]; "one_hot" float32 [n, depth]; others all as one document
  /// [depth]. Throws StateError without a vocabulary, ConfigError for an unknown token if
  /// num_oov_indices is 0.
  at::Tensor operator()(const std::vector<std::string>& tokens) const;
  at::Tensor operator()(std::initializer_list<const char*> tokens) const;
  /// Looks n documents of m tokens up: "int" int64 [n, m]; "one_hot" float32 [n, m, depth], or [n,
  /// depth] if m is 1; others [n, depth], where lengths may differ. Throws ShapeError if they
  /// differ in the first two modes.
  at::Tensor operator()(const std::vector<std::vector<std::string>>& documents) const;
  /// Returns the token of each index, in row-major order; oov_token for an unknown index. Needs
  /// `invert`.
  std::vector<std::string> operator()(const at::Tensor& indices) const;
};

}  // namespace tessera
