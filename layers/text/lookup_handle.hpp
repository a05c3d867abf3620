#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/data/text_data.hpp>
#include <tessera/framework/nn/text_layer.hpp>

namespace tessera {

namespace detail {
class LookupLayer;
}  // namespace detail

/// Callback that reports progress: `done` of `total` texts.
using TextProgress = std::function<void(int64_t done, int64_t total)>;
/// Returns the next texts of a corpus that does not fit in memory; nullopt after the last.
using TextStream = std::function<std::optional<std::vector<std::string>>()>;

/// Options of a pass over a corpus.
struct TextPassOptions {
  TextProgress progress = nullptr;  ///< called on the calling thread, about every 2048 texts
};

/// A handle to a layer that looks texts up: TextVectorization or StringLookup.
class LookupHandle : public LayerHandle {
 public:
  /// Wraps a layer of load_text_layer() or load_export(). Throws ConfigError for another class.
  explicit LookupHandle(const std::shared_ptr<TextLayer>& layer);
  using LayerHandle::operator();
  /// Returns the layer, to pass where any layer that encodes texts is accepted.
  operator std::shared_ptr<TextLayer>() const {  // NOLINT: reads as the layer
    return std::static_pointer_cast<TextLayer>(layer());
  }

  /// Learns the vocabulary, all tokens that occur or the max_tokens most frequent; replaces the
  /// earlier one. Throws StateError if the options give a vocabulary, ConfigError for texts without
  /// a token.
  void adapt(const TextDataHandle& texts, const TextPassOptions& options = {}) const;
  /// Learns the vocabulary from texts that do not fit in memory.
  void adapt(const TextStream& stream) const;
  /// Discards the counts, at the start of an adapt() in steps.
  void reset_state() const;
  /// Counts the tokens of more texts during an adapt() in steps.
  void update_state(const TextDataHandle& texts) const;
  /// Makes the vocabulary from the counts, at the end of an adapt() in steps.
  void finalize_state() const;

  /// Returns the tokens by index; `include_special_tokens`: with the mask and oov_token.
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const;
  /// Returns the number of indices, including those of the mask and unknown tokens.
  int64_t vocabulary_size() const;
  /// Returns the weights by index in "tf_idf" mode; none in others.
  const std::vector<float>& idf_weights() const;
  /// Replaces the vocabulary; `tokens` may begin with the special ones. "tf_idf" needs a weight for
  /// each; unknown tokens get the mean weight. Throws ConfigError.
  void set_vocabulary(const std::vector<std::string>& tokens,
                      const std::vector<double>& idf_weights = {}) const;

  /// Encodes a batch of texts, [texts, ...]: int64 in "int" mode, otherwise float32. Throws
  /// StateError without a vocabulary.
  at::Tensor transform(std::span<const std::string_view> texts) const;
  at::Tensor transform(const std::vector<std::string>& texts) const;
  /// Encodes a batch of texts in a layout. Each shard is made separately, and texts of which this
  /// process holds nothing are not read.
  DTensor transform(std::span<const std::string_view> texts, const Layout& layout) const;
  DTensor transform(const std::vector<std::string>& texts, const Layout& layout) const;
  /// Returns a dataset of the encoded texts and their labels; all texts are read once, here.
  std::shared_ptr<const Dataset> dataset(const TextDataHandle& texts,
                                         const TextPassOptions& options = {}) const;

 private:
  detail::LookupLayer& lookup_layer() const;
};

}  // namespace tessera
