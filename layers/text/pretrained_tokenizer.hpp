#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/data/text_data.hpp>
#include <tessera/framework/nn/text_layer.hpp>
#include <tessera/framework/text/tokenizer.hpp>

namespace tessera {

/// Options of PretrainedTokenizer.
struct PretrainedTokenizerOptions {
  std::optional<int64_t> length =
      std::nullopt;                ///< length of sequences (default: the tokenizer's padding)
  bool add_special_tokens = true;  ///< whether the model's special tokens are added
  std::string name = "";           ///< first component of the weights' paths
  std::string dtype = "";          ///< dtype policy (default: the global policy)
  bool trainable = true;           ///< whether training changes the weights
};

/// Encoded texts, each int64 [texts, length].
struct TokenBatch {
  at::Tensor ids;             ///< token ids
  at::Tensor attention_mask;  ///< 0 for padding, otherwise 1
  at::Tensor type_ids;        ///< the text of each token, for models of two
};

/// Options of PretrainedTokenizer::dataset().
struct TokenDatasetOptions {
  bool attention_mask = false;  ///< whether the mask is the model's second input
};

/// Encodes texts as token ids by a tokenizer of a pretrained model (Keras Hub's Tokenizer and
/// Packer in one). It runs before a model, since texts are no tensors; an export contains it, with
/// its vocabulary. Texts are encoded on all of ATen's threads.
///
/// Shape: n texts -> int64 [n, length, or the longest].
/// Communication: none; each process makes the shards that it holds.
///
///     PretrainedTokenizer tokenize(load_tokenizer("MiniLM/"), {.length = 128});
///     model.fit(tokenize.dataset(texts, {.attention_mask = true}), {.epochs = 1});
class PretrainedTokenizer : public LayerHandle {
 public:
  /// `length` replaces the tokenizer's truncation and padding: longer sequences are truncated, and
  /// shorter ones padded. Throws ConfigError for a length below 1, or padding at the left.
  explicit PretrainedTokenizer(const Tokenizer& tokenizer,
                               const PretrainedTokenizerOptions& options = {});
  /// Wraps a layer of load_export(). Throws ConfigError for another class.
  explicit PretrainedTokenizer(const std::shared_ptr<TextLayer>& layer);
  using LayerHandle::operator();
  /// Returns the layer, to pass where any layer that encodes texts is accepted.
  operator std::shared_ptr<TextLayer>() const {  // NOLINT: reads as the layer
    return std::static_pointer_cast<TextLayer>(layer());
  }

  const Tokenizer& tokenizer() const;
  /// Encodes a batch of texts: token ids, mask and type ids.
  TokenBatch encode(std::span<const std::string_view> texts) const;
  /// Encodes a batch of texts: token ids, mask and type ids.
  TokenBatch encode(const std::vector<std::string>& texts) const;
  /// Returns the token ids of a batch of texts.
  at::Tensor operator()(const std::vector<std::string>& texts) const { return encode(texts).ids; }
  /// Returns a dataset of the encoded texts and their labels; all texts are read once, here. Rows
  /// have the longest sequence's length unless the layer has one.
  std::shared_ptr<const Dataset> dataset(const TextDataHandle& texts,
                                         const TokenDatasetOptions& options = {}) const;
};

}  // namespace tessera
