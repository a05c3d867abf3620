#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/layers/text/lookup_layer.hpp>

namespace tessera {

struct StringLookupOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  ///< none: as many as there are
  int64_t num_oov_indices = 1;  ///< several: unknown tokens are spread by their Fingerprint64
  std::optional<std::string> mask_token = std::nullopt;
  std::string oov_token = "[UNK]";
  std::vector<std::string> vocabulary = {};  ///< none: adapt() learns it
  std::vector<double> idf_weights = {};      ///< only for "tf_idf"
  bool invert = false;                       ///< indices to tokens
  std::string output_mode = "int";
  bool pad_to_max_tokens = false;
  bool sparse = false;             ///< there are no sparse tensors: only false
  std::string encoding = "utf-8";  ///< the only one
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// Tokens as indices of a vocabulary, and back (keras.layers.StringLookup). Index 0 is the mask in
/// "int" mode if there is one; num_oov_indices for unknown tokens follow, then the vocabulary.
/// transform() takes each text for one token: "int" int64 [texts, 1], else float32
/// [texts, vocabulary or max_tokens].
class StringLookupLayer final : public LookupLayer {
 public:
  explicit StringLookupLayer(const StringLookupOptions& options);
  Json config() const override;

  using LookupLayer::adapt;
  void adapt(const std::vector<std::vector<std::string>>& documents);
  at::Tensor indices(const std::vector<std::string>& tokens) const;
  at::Tensor indices(const std::vector<std::vector<std::string>>& documents) const;
  std::vector<std::string> tokens(const at::Tensor& indices) const;

 protected:
  void tokenize(std::string_view text, Tokens& out) const override {
    out.clear();
    out.add(text);
  }

 private:
  void check_direction(bool inverts) const;
  at::Tensor bags(const std::vector<std::vector<std::string>>& documents) const;
};

class StringLookup : public LookupHandle {
 public:
  /// Throws ConfigError for options that do not fit together.
  explicit StringLookup(const StringLookupOptions& options = {})
      : LookupHandle(make<StringLookupLayer>("StringLookup", options)) {}
  static StringLookup from_config(JsonObject& config);

  using LookupHandle::adapt;
  void adapt(std::initializer_list<const char*> tokens) const { adapt(TextDataRef(tokens)); }
  /// Learns from documents of several tokens; in "tf_idf" mode weights come from how many of them
  /// have a token.
  void adapt(const std::vector<std::vector<std::string>>& documents) const {
    string_lookup().adapt(documents);
  }

  using LookupHandle::operator();
  /// Of n tokens: "int" int64 [n]; "one_hot" float32 [n, depth]; else of all as one document
  /// [depth]. Throws StateError without a vocabulary, ConfigError for an unknown token if
  /// num_oov_indices is 0.
  at::Tensor operator()(const std::vector<std::string>& tokens) const {
    return string_lookup().indices(tokens);
  }
  at::Tensor operator()(std::initializer_list<const char*> tokens) const {
    return string_lookup().indices(std::vector<std::string>(tokens.begin(), tokens.end()));
  }
  /// Of n documents of m tokens: "int" int64 [n, m]; "one_hot" float32 [n, m, depth], without m if
  /// it is 1; else [n, depth], of any lengths. Throws ShapeError for lengths that differ.
  at::Tensor operator()(const std::vector<std::vector<std::string>>& documents) const {
    return string_lookup().indices(documents);
  }
  /// With `invert`: the token of each index, in row-major order; oov_token for one that has none.
  std::vector<std::string> operator()(const at::Tensor& indices) const {
    return string_lookup().tokens(indices);
  }

 private:
  StringLookupLayer& string_lookup() const { return static_cast<StringLookupLayer&>(*layer()); }
};

}  // namespace tessera
