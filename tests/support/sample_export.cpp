#include "tests/support/sample_export.hpp"

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera::test {

WordTable::WordTable(std::vector<std::string> words, const LayerOptions& options)
    : TextLayer(options), words_(std::move(words)) {}

Shape WordTable::text_shape() const { return {static_cast<int64_t>(words_.size())}; }

at::Tensor WordTable::transform(std::span<const std::string_view> texts) const {
  const auto rows = static_cast<int64_t>(texts.size());
  at::Tensor counts = at::zeros({rows, text_shape()[0]});
  auto* row = counts.mutable_data_ptr<float>();
  for (const std::string_view text : texts) {
    for (size_t from = 0; from < text.size();) {
      const size_t end = std::min(text.find(' ', from), text.size());
      const auto word = std::find(words_.begin(), words_.end(), text.substr(from, end - from));
      if (word != words_.end()) row[word - words_.begin()] += 1;
      from = end + 1;
    }
    row += words_.size();
  }
  return counts;
}

DTensor WordTable::transform(std::span<const std::string_view> texts, const Layout& layout) const {
  return pack(transform(texts), layout);
}

LayerAssets WordTable::assets() const {
  std::string lines;
  for (const std::string& word : words_) lines += word + "\n";
  return {{"words.txt", lines}};
}

void WordTable::load_assets(const LayerAssets& assets) {
  const auto asset = assets.find("words.txt");
  if (asset == assets.end() || assets.size() != 1) {
    throw ConfigError(class_name(), "there is an asset \"words.txt\"", "none", "add it");
  }
  words_.clear();
  for (size_t from = 0; from < asset->second.size();) {
    const size_t end = std::min(asset->second.find('\n', from), asset->second.size());
    words_.push_back(asset->second.substr(from, end - from));
    from = end + 1;
  }
}

void register_word_table() {
  static const bool once = [] {
    register_layer("WordTable", [](JsonObject& config) {
      const LayerOptions options = take_layer_options(config);
      return make_layer<WordTable>(std::vector<std::string>(), options);
    });
    return true;
  }();
  static_cast<void>(once);
}

std::shared_ptr<WordTable> sample_words() {
  register_word_table();
  return std::make_shared<WordTable>(
      std::vector<std::string>{"good", "great", "fine", "fun", "love", "best", "bad", "awful",
                               "dull", "sad", "hate", "worst"},
      LayerOptions{.name = "words"});
}

Sequential sample_classifier(int64_t seed) {
  const Sequential model(
      {Dense(8, {.activation = "relu",
                 .kernel_initializer = GlorotUniform({.seed = seed}),
                 .name = "hidden"}),
       Dense(2, {.kernel_initializer = GlorotUniform({.seed = seed + 1}), .name = "logits"})});
  model.build({-1, 12});
  return model;
}

ExportOptions sample_export_options() {
  return {.text = sample_words(),
          .sample = {"good fun love", "awful dull plot", ""},
          .labels = {"negative", "positive"},
          .activation = "softmax",
          .step = 7};
}

int64_t export_sample(const std::string& folder, int64_t seed) {
  return export_model(sample_classifier(seed), folder, sample_export_options());
}

}  // namespace tessera::test
