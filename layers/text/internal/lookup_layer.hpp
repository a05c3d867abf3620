#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/layers/text/internal/index_lookup.hpp>
#include <tessera/layers/text/internal/text_rows.hpp>
#include <tessera/layers/text/internal/tokenizer.hpp>
#include <tessera/layers/text/lookup_handle.hpp>

namespace tessera::detail {

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
  Shape batch_shape(std::span<const std::string_view> texts) const override;
  at::Tensor transform(std::span<const std::string_view> texts) const override;
  DTensor transform(std::span<const std::string_view> texts, const Layout& layout) const override;
  /// All of some texts at once, kept without their zeros; get() makes dense batches of them and
  /// get_placed() each shard by itself, as `layouts` cut "x".
  std::shared_ptr<const Dataset> dataset(const TextDataHandle& texts,
                                         const TextPassOptions& options) const;

  void adapt(const TextDataHandle& texts, const TextPassOptions& options);
  void adapt(const TextStream& stream);
  void reset_state() { counts_.clear(); }
  void update_state(const TextDataHandle& texts, const TextPassOptions& options = {});
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
  std::vector<TokenCounts> counts_;  ///< counts of each thread, while adapting
};

/// A lookup layer; errors of its constructor name it.
template <class Made, class Options>
std::shared_ptr<Made> make_lookup(const std::string& class_name, const Options& options) {
  try {
    return std::make_shared<Made>(options);
  } catch (const Error&) {
    rethrow_at(layer_place(class_name, options.name));
  }
}

}  // namespace tessera::detail
