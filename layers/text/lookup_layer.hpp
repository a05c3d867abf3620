#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/dataset.hpp>
#include <tessera/framework/nn/text_data.hpp>
#include <tessera/framework/nn/text_layer.hpp>
#include <tessera/layers/text/index_lookup.hpp>
#include <tessera/layers/text/text_rows.hpp>
#include <tessera/layers/text/tokenizer.hpp>

namespace tessera {

/// Told from time to time how many texts of how many are done.
using TextProgress = std::function<void(int64_t done, int64_t total)>;
/// Gives the texts of a corpus that does not fit in memory, some a call; nothing after the last.
using TextStream = std::function<std::optional<std::vector<std::string>>()>;

/// Passes over a corpus.
struct TextPassOptions {
  /// Called from the calling thread, about every 2048 texts and at the end.
  TextProgress progress = nullptr;
};

/// "TextVectorization words", to begin an error with.
std::string layer_place(const std::string& class_name, const std::string& name);

/// What TextVectorization and StringLookup share: texts become tokens, tokens become indices, and
/// these a row of the batch. Both passes over a corpus run on all of ATen's threads; beside the
/// result they hold a table of different tokens, or a row, for each thread.
class LookupLayer : public TextLayer {
 public:
  std::string class_name() const override { return class_name_; }

  bool ready() const override { return lookup_.has_vocabulary(); }
  Shape text_shape() const override;
  at::Tensor transform(std::span<const std::string_view> texts) const override;
  DTensor transform(std::span<const std::string_view> texts, const Layout& layout) const override;
  /// All of some texts at once, kept without their zeros; get() makes dense batches of them and
  /// get_placed() each shard by itself, as `layouts` cut "x".
  std::shared_ptr<const Dataset> dataset(const TextDataRef& texts,
                                         const TextPassOptions& options) const;

  void adapt(const TextDataRef& texts, const TextPassOptions& options);
  void adapt(const TextStream& stream);
  void reset_state() { counts_.clear(); }
  void update_state(const TextDataRef& texts, const TextPassOptions& options = {});
  void finalize_state();

  const IndexLookup& lookup() const { return lookup_; }
  void set_vocabulary(const std::vector<std::string>& tokens, const std::vector<double>& weights);
  /// The vocabulary, unless config() has it.
  LayerAssets assets() const override;
  void load_assets(const LayerAssets& assets) override;

 protected:
  /// `length` is that of every sequence in "int" mode; none: as long as the longest of a batch.
  LookupLayer(const std::string& class_name, const LayerOptions& base, IndexLookupOptions options,
              std::optional<int64_t> length);
  /// Puts the tokens of a text in place of those in `out`. Called from several threads at a time.
  virtual void tokenize(std::string_view text, Tokens& out) const = 0;
  virtual const std::vector<int64_t>& ngrams() const;
  /// Puts the tokens of text `i` in place of those in `out`.
  using TokensAt = std::function<void(int64_t i, Tokens& out)>;
  /// The rows of `size` texts. Throws StateError unless ready(), ConfigError if it inverts.
  TextRows rows(int64_t size, const TokensAt& tokens, const TextProgress& progress = nullptr) const;
  void count(int64_t size, const TokensAt& tokens, const TextProgress& progress = nullptr);
  /// Throws StateError unless ready().
  void check_ready() const;
  std::string where() const { return layer_place(class_name_, path()); }
  /// Has errors name this layer.
  template <class Call>
  auto named(const Call& call) const {
    try {
      return call();
    } catch (const Error&) {
      rethrow_at(where());
    }
  }

 private:
  struct Scratch;
  /// Calls visit(token) for each token, or n-gram.
  template <class Visit>
  void for_each_token(const Tokens& tokens, const Visit& visit) const;
  void add_sequence(Scratch& scratch, TextRows& out) const;
  void add_bag(Scratch& scratch, TextRows& out) const;

  std::string class_name_;
  IndexLookup lookup_;
  std::optional<int64_t> length_;
  std::vector<TokenCounts> counts_;  ///< of each thread, while adapting
};

/// A handle to a layer that looks texts up.
class LookupHandle : public LayerHandle {
 public:
  using LayerHandle::operator();
  /// The layer, for those who take any that makes numbers of texts.
  operator std::shared_ptr<TextLayer>() const {  // NOLINT: reads as the layer
    return std::static_pointer_cast<TextLayer>(layer());
  }

  /// Learns the vocabulary, all tokens that occur or the max_tokens most frequent, and forgets
  /// the one before. Throws StateError if one was given by the options, ConfigError for texts
  /// without a token.
  void adapt(const TextDataRef& texts, const TextPassOptions& options = {}) const {
    lookup_layer().adapt(texts, options);
  }
  /// The same from texts that do not fit in memory.
  void adapt(const TextStream& stream) const { lookup_layer().adapt(stream); }
  /// adapt() in steps: forget what was counted, count more texts, make the vocabulary.
  void reset_state() const { lookup_layer().reset_state(); }
  void update_state(const TextDataRef& texts) const { lookup_layer().update_state(texts); }
  void finalize_state() const { lookup_layer().finalize_state(); }

  /// The tokens by index, the mask and unknown token included unless asked otherwise.
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const {
    return lookup_layer().lookup().vocabulary(include_special_tokens);
  }
  /// Number of indices, those of the mask and of unknown tokens included.
  int64_t vocabulary_size() const { return lookup_layer().lookup().vocabulary_size(); }
  /// Weights by index in "tf_idf" mode; none in others.
  const std::vector<float>& idf_weights() const { return lookup_layer().lookup().idf_weights(); }
  /// Replaces the vocabulary; tokens may begin with the special ones. "tf_idf" needs a weight for
  /// each; unknown tokens get the mean. Throws ConfigError.
  void set_vocabulary(const std::vector<std::string>& tokens,
                      const std::vector<double>& idf_weights = {}) const {
    lookup_layer().set_vocabulary(tokens, idf_weights);
  }

  /// The batch of some texts, [texts, ...]: int64 in "int" mode, else float32. Throws StateError
  /// without a vocabulary.
  at::Tensor transform(std::span<const std::string_view> texts) const {
    return lookup_layer().transform(texts);
  }
  at::Tensor transform(const std::vector<std::string>& texts) const;
  /// The same in a layout; each shard is made by itself, and no text is read that this process
  /// holds nothing of.
  DTensor transform(std::span<const std::string_view> texts, const Layout& layout) const {
    return lookup_layer().transform(texts, layout);
  }
  DTensor transform(const std::vector<std::string>& texts, const Layout& layout) const;
  /// Data to train on, with the texts' labels: all texts are read once, here.
  std::shared_ptr<const Dataset> dataset(const TextDataRef& texts,
                                         const TextPassOptions& options = {}) const {
    return lookup_layer().dataset(texts, options);
  }

 protected:
  using LayerHandle::LayerHandle;
  /// A layer whose constructor's errors name it.
  template <class Made, class Options>
  static std::shared_ptr<Made> make(const std::string& class_name, const Options& options) {
    try {
      return std::make_shared<Made>(options);
    } catch (const Error&) {
      rethrow_at(layer_place(class_name, options.name));
    }
  }
  LookupLayer& lookup_layer() const { return static_cast<LookupLayer&>(*layer()); }
};

}  // namespace tessera
