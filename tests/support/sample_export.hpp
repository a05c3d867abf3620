#pragma once

#include <tessera/framework/io/export.hpp>
#include <tessera/tessera.hpp>

namespace tessera::test {

/// A text layer for tests, registered as "WordTable": counts each word of its list in a text split
/// at blanks. Its words are an asset, "words.txt".
class WordTable final : public TextLayer {
 public:
  explicit WordTable(std::vector<std::string> words, const LayerOptions& options = {});
  std::string class_name() const override { return "WordTable"; }
  bool ready() const override { return !words_.empty(); }
  Shape text_shape() const override;
  at::Tensor transform(std::span<const std::string_view> texts) const override;
  DTensor transform(std::span<const std::string_view> texts, const Layout& layout) const override;
  LayerAssets assets() const override;
  void load_assets(const LayerAssets& assets) override;

 private:
  std::vector<std::string> words_;
};

/// Registers "WordTable", once.
void register_word_table();

/// 12 words, of which the first half are kind.
std::shared_ptr<WordTable> sample_words();

/// A classifier of those counts with two logits, built; its weights follow from the seed.
Sequential sample_classifier(int64_t seed = 1);

/// Its export options: labels "negative" and "positive", softmax.
ExportOptions sample_export_options();

/// Exports sample_classifier(seed) as a new version and returns its number.
int64_t export_sample(const std::string& folder, int64_t seed = 1);

}  // namespace tessera::test
