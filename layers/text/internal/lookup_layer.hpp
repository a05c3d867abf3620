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
#include <tessera/layers/text/internal/word_splitter.hpp>
#include <tessera/layers/text/lookup_handle.hpp>

namespace tessera::detail {

/// Returns the start of an error message, such as "TextVectorization words".
std::string error_prefix(const std::string& class_name, const std::string& name);

/// Base of TextVectorization and StringLookup: texts become tokens, tokens become indices, and
/// indices a row of the batch. Learning and encoding a corpus run on all of ATen's threads; besides
/// the result they need memory for a token table, or a row, for each thread.
class LookupLayer : public TextLayer {
 public:
  std::string class_name() const override { return class_name_; }

  bool ready() const override { return lookup_.has_vocabulary(); }
  Shape text_shape() const override;
  Shape batch_shape(std::span<const std::string_view> texts) const override;
  at::Tensor transform(std::span<const std::string_view> texts) const override;
  DTensor transform(std::span<const std::string_view> texts, const Layout& layout) const override;
  /// Encodes all texts at once and stores them without their zeros; get() makes dense batches of
  /// them, and get_placed() each shard separately, sharded as `layouts` says for "x".
  std::shared_ptr<const Dataset> dataset(const TextDataHandle& texts,
                                         const TextPassOptions& options) const;

  void adapt(const TextDataHandle& texts, const TextPassOptions& options);
  void adapt(const TextStream& stream);
  void reset_state() { counts_.clear(); }
  void update_state(const TextDataHandle& texts, const TextPassOptions& options = {});
  void finalize_state();

  const IndexLookup& lookup() const { return lookup_; }
  void set_vocabulary(const std::vector<std::string>& tokens, const std::vector<double>& weights);
  /// Returns the vocabulary, unless config() has it.
  LayerAssets assets() const override;
  void load_assets(const LayerAssets& assets) override;

 protected:
  /// `length`: length of every sequence in "int" mode (nullopt: the longest of a batch).
  LookupLayer(const std::string& class_name, const LayerOptions& base, IndexLookupOptions options,
              std::optional<int64_t> length);
  /// Replaces `out` by the tokens of a text. Called from several threads at once.
  virtual void tokenize(std::string_view text, Tokens& out) const = 0;
  virtual const std::vector<int64_t>& ngrams() const;
  /// Replaces `out` by the tokens of text `i`.
  using TokensAt = std::function<void(int64_t i, Tokens& out)>;
  /// Returns the rows of `size` texts. Throws StateError unless ready(), ConfigError if it inverts.
  TextRows rows(int64_t size, const TokensAt& tokens, const TextProgress& progress = nullptr) const;
  void count(int64_t size, const TokensAt& tokens, const TextProgress& progress = nullptr);
  /// Throws StateError unless ready().
  void check_ready() const;
  std::string where() const { return error_prefix(class_name_, path()); }
  /// Runs `call`, with errors naming this layer.
  template <class Call>
  auto with_error_location(const Call& call) const {
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
  std::vector<TokenCounts> counts_;  ///< counts of each thread during an adapt()
};

/// Makes a lookup layer, with errors of its constructor naming it.
template <class LookupClass, class Options>
std::shared_ptr<LookupClass> make_lookup(const std::string& class_name, const Options& options) {
  try {
    return std::make_shared<LookupClass>(options);
  } catch (const Error&) {
    rethrow_at(error_prefix(class_name, options.name));
  }
}

}  // namespace tessera::detail
