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

/// Told from time to time how many texts of how many are done.
using TextProgress = std::function<void(int64_t done, int64_t total)>;
/// Gives the texts of a corpus that does not fit in memory, some a call; nothing after the last.
using TextStream = std::function<std::optional<std::vector<std::string>>()>;

/// Options of a pass over a corpus.
struct TextPassOptions {
  TextProgress progress = nullptr;  ///< called by the calling thread, every 2048 texts or so
};

/// A handle to a layer that looks texts up, TextVectorization or StringLookup.
class LookupHandle : public LayerHandle {
 public:
  /// What load_text_layer() and load_export() give. Throws ConfigError for another class.
  explicit LookupHandle(const std::shared_ptr<TextLayer>& layer);
  using LayerHandle::operator();
  /// The layer, for those who take any that makes numbers of texts.
  operator std::shared_ptr<TextLayer>() const {  // NOLINT: reads as the layer
    return std::static_pointer_cast<TextLayer>(layer());
  }

  /// Learns the vocabulary, all tokens that occur or the max_tokens most frequent, and forgets
  /// the one before. Throws StateError if one was given by the options, ConfigError for texts
  /// without a token.
  void adapt(const TextDataHandle& texts, const TextPassOptions& options = {}) const;
  /// Learns the vocabulary from texts that do not fit in memory.
  void adapt(const TextStream& stream) const;
  /// Forgets what was counted, before an adapt() in steps.
  void reset_state() const;
  /// Counts more texts, in an adapt() in steps.
  void update_state(const TextDataHandle& texts) const;
  /// Makes the vocabulary of what was counted, after an adapt() in steps.
  void finalize_state() const;

  /// The tokens by index, the mask and unknown token included unless asked otherwise.
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const;
  /// Number of indices, those of the mask and of unknown tokens included.
  int64_t vocabulary_size() const;
  /// Weights by index in "tf_idf" mode; none in others.
  const std::vector<float>& idf_weights() const;
  /// Replaces the vocabulary; tokens may begin with the special ones. "tf_idf" needs a weight for
  /// each; unknown tokens get the mean. Throws ConfigError.
  void set_vocabulary(const std::vector<std::string>& tokens,
                      const std::vector<double>& idf_weights = {}) const;

  /// The batch of some texts, [texts, ...]: int64 in "int" mode, else float32. Throws StateError
  /// without a vocabulary.
  at::Tensor transform(std::span<const std::string_view> texts) const;
  at::Tensor transform(const std::vector<std::string>& texts) const;
  /// The batch of some texts in a layout; each shard is made by itself, and no text is read that
  /// this process holds nothing of.
  DTensor transform(std::span<const std::string_view> texts, const Layout& layout) const;
  DTensor transform(const std::vector<std::string>& texts, const Layout& layout) const;
  /// Data to train on, with the texts' labels: all texts are read once, here.
  std::shared_ptr<const Dataset> dataset(const TextDataHandle& texts,
                                         const TextPassOptions& options = {}) const;

 private:
  detail::LookupLayer& lookup_layer() const;
};

}  // namespace tessera
