#include <tessera/layers/text/pretrained_tokenizer.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(PretrainedTokenizerOptions& o, const Visit& visit) {
  visit("length", o.length);
  visit("add_special_tokens", o.add_special_tokens);
}

namespace {

constexpr const char* tokenizer_class = "PretrainedTokenizer";
constexpr const char* tokenizer_asset = "tokenizer.json";
constexpr int64_t texts_per_task = 8;

/// The encoded rows of some texts, without padding.
using TokenRows = std::vector<std::vector<int32_t>>;

class PretrainedTokenizerLayer final : public TextLayer {
 public:
  PretrainedTokenizerLayer(std::optional<Tokenizer> tokenizer,
                           const PretrainedTokenizerOptions& options);

  std::string class_name() const override { return tokenizer_class; }
  Json config() const override { return layer_config(*this, options_); }
  LayerAssets assets() const override;
  void load_assets(const LayerAssets& assets) override;

  bool ready() const override { return tokenizer_.has_value(); }
  Shape text_shape() const override { return {fixed_length().value_or(-1)}; }
  at::Tensor transform(std::span<const std::string_view> texts) const override;
  DTensor transform(std::span<const std::string_view> texts, const Layout& layout) const override;

  const Tokenizer& tokenizer() const;
  TokenBatch encode(std::span<const std::string_view> texts) const;
  std::shared_ptr<const Dataset> dataset(const TextDataHandle& texts,
                                         const TokenDatasetOptions& options) const;

 private:
  void set_tokenizer(Tokenizer tokenizer);
  std::optional<int64_t> fixed_length() const;
  /// Returns the length of padded rows.
  int64_t length_of(const TokenRows& rows) const;
  std::string where() const {
    return path().empty() ? tokenizer_class : str(tokenizer_class, ' ', path());
  }

  PretrainedTokenizerOptions options_;
  std::optional<Tokenizer> tokenizer_;
};

/// Returns texts that a handle refers to.
class TextViews {
 public:
  explicit TextViews(const TextDataHandle& texts) {
    for (int64_t row = 0; row < texts->size(); ++row) views_.push_back(texts->text(row));
  }
  std::span<const std::string_view> all() const { return views_; }

 private:
  std::vector<std::string_view> views_;
};

/// Encoded texts as training data.
class TokenDataset final : public Dataset {
 public:
  TokenDataset(TokenRows rows, int64_t length, int32_t pad_id, bool has_mask, at::Tensor labels,
               std::string name)
      : rows_(std::move(rows)),
        length_(length),
        pad_id_(pad_id),
        has_mask_(has_mask),
        labels_(std::move(labels)),
        name_(std::move(name)) {}

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  bool concurrent() const override { return true; }
  std::string name() const override { return name_; }
  std::vector<Shape> input_shapes() const override {
    return std::vector<Shape>(has_mask_ ? 2 : 1, Shape{length_});
  }

  Examples get(std::span<const int64_t> rows) const override {
    const auto count = static_cast<int64_t>(rows.size());
    at::Tensor ids = at::full({count, length_}, pad_id_, at::kLong);
    at::Tensor mask = has_mask_ ? at::zeros({count, length_}, at::kLong) : at::Tensor();
    auto* id_data = ids.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<int32_t>& row = row_at(rows[static_cast<size_t>(i)]);
      std::copy(row.begin(), row.end(), id_data + i * length_);
      if (has_mask_) {
        std::fill_n(mask.mutable_data_ptr<int64_t>() + i * length_, row.size(), int64_t{1});
      }
    }
    Examples examples;
    examples.x.push_back(std::move(ids));
    if (has_mask_) examples.x.push_back(std::move(mask));
    if (labels_.defined()) {
      const at::Tensor numbers =
          at::tensor(at::ArrayRef<int64_t>(rows.data(), rows.size()), at::kLong);
      examples.y.push_back(labels_.index_select(0, numbers));
    }
    return examples;
  }

 private:
  const std::vector<int32_t>& row_at(int64_t row) const {
    if (row >= 0 && row < size()) return rows_[static_cast<size_t>(row)];
    throw ShapeError(name_, str("a row number lies in [0, ", size(), ")"), str(row),
                     "ask for rows that the dataset has");
  }

  TokenRows rows_;
  int64_t length_;
  int32_t pad_id_;
  bool has_mask_;
  at::Tensor labels_;
  std::string name_;
};

/// Calls work(i) for each text, on all of ATen's threads.
template <class Work>
void for_each_text(size_t count, const Work& work) {
  at::parallel_for(0, static_cast<int64_t>(count), texts_per_task, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) work(static_cast<size_t>(i));
  });
}

/// Returns the lists of one kind as int64 [texts, length], padded by `pad`.
at::Tensor padded(const std::vector<Encoding>& encodings, std::vector<int32_t> Encoding::*list,
                  int64_t length, int32_t pad) {
  const auto count = static_cast<int64_t>(encodings.size());
  at::Tensor out = at::full({count, length}, pad, at::kLong);
  auto* data = out.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int32_t>& row = encodings[static_cast<size_t>(i)].*list;
    std::copy(row.begin(), row.end(), data + i * length);
  }
  return out;
}

PretrainedTokenizerLayer::PretrainedTokenizerLayer(std::optional<Tokenizer> tokenizer,
                                                   const PretrainedTokenizerOptions& options)
    : TextLayer(common_options(options)), options_(options) {
  if (options_.length && (*options_.length < 1 || *options_.length > INT32_MAX)) {
    throw ConfigError(where(), str("length from 1 to ", INT32_MAX), str(*options_.length),
                      "leave it out for the longest text's");
  }
  if (tokenizer) set_tokenizer(std::move(*tokenizer));
}

void PretrainedTokenizerLayer::set_tokenizer(Tokenizer tokenizer) {
  Padding padding = tokenizer.padding().value_or(Padding{});
  if (padding.direction != "right") {
    throw ConfigError(where(), "padding at the right", "padding at the left",
                      "call set_padding(), or use encode_batch() of the tokenizer");
  }
  if (options_.length) {
    padding.length = options_.length;
    padding.multiple_of = 1;
    Truncation truncation = tokenizer.truncation().value_or(Truncation{});
    truncation.max_length = *options_.length;
    tokenizer.set_truncation(truncation);
  }
  tokenizer.set_padding(padding);
  tokenizer_ = std::move(tokenizer);
}

const Tokenizer& PretrainedTokenizerLayer::tokenizer() const {
  if (tokenizer_) return *tokenizer_;
  throw StateError(where(), "the tokenizer is known", "none", "call load_assets()");
}

/// Rows that are not truncated to the length of padding may be longer.
std::optional<int64_t> PretrainedTokenizerLayer::fixed_length() const {
  if (options_.length || !tokenizer_) return options_.length;
  const auto& truncation = tokenizer_->truncation();
  const auto length = tokenizer_->padding()->length;
  const bool fits = length && truncation && truncation->max_length <= *length;
  return fits && tokenizer_->padding()->multiple_of == 1 ? length : std::nullopt;
}

int64_t PretrainedTokenizerLayer::length_of(const TokenRows& rows) const {
  if (const auto length = fixed_length()) return *length;
  size_t longest = 0;
  for (const auto& row : rows) longest = std::max(longest, row.size());
  const Padding& padding = *tokenizer().padding();
  const int64_t length = std::max(static_cast<int64_t>(longest), padding.length.value_or(0));
  return (length + padding.multiple_of - 1) / padding.multiple_of * padding.multiple_of;
}

TokenBatch PretrainedTokenizerLayer::encode(std::span<const std::string_view> texts) const {
  Tokenizer unpadded = tokenizer();
  const Padding padding = *unpadded.padding();
  unpadded.set_padding(std::nullopt);
  std::vector<Encoding> encodings(texts.size());
  for_each_text(texts.size(), [&](size_t i) {
    encodings[i] = unpadded.encode(texts[i], {.add_special_tokens = options_.add_special_tokens});
  });
  TokenRows lengths;
  for (const Encoding& encoding : encodings) lengths.push_back(encoding.ids);
  const int64_t length = length_of(lengths);
  return {padded(encodings, &Encoding::ids, length, padding.pad_id),
          padded(encodings, &Encoding::attention_mask, length, 0),
          padded(encodings, &Encoding::type_ids, length, padding.pad_type_id)};
}

at::Tensor PretrainedTokenizerLayer::transform(std::span<const std::string_view> texts) const {
  return encode(texts).ids;
}

DTensor PretrainedTokenizerLayer::transform(std::span<const std::string_view> texts,
                                            const Layout& layout) const {
  const auto count = static_cast<int64_t>(texts.size());
  const std::optional<int64_t> length = fixed_length();
  // Another process may hold the longest sequence.
  const at::Tensor all = length ? at::Tensor() : transform(texts);
  const ShardingPtr sharding = intern({count, length ? *length : all.size(1)}, at::kLong, layout);
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    const Interval rows = block.intervals[0];
    const Interval columns = block.intervals[1];
    const auto first = static_cast<size_t>(rows.lo);
    const at::Tensor block_rows =
        length ? transform(texts.subspan(first, static_cast<size_t>(rows.size())))
               : all.slice(0, rows.lo, rows.hi);
    blocks.push_back(moved_to(block_rows.slice(1, columns.lo, columns.hi).contiguous(),
                              block_device(layout.mesh(), block)));
  }
  return DTensor(sharding, std::move(blocks));
}

std::shared_ptr<const Dataset> PretrainedTokenizerLayer::dataset(
    const TextDataHandle& texts, const TokenDatasetOptions& options) const {
  const Tokenizer& words = tokenizer();
  const TextViews views(texts);
  TokenRows rows(views.all().size());
  for_each_text(rows.size(), [&](size_t i) {
    words.encode_ids(views.all()[i], rows[i], {.add_special_tokens = options_.add_special_tokens});
  });
  const int64_t length = length_of(rows);
  return std::make_shared<TokenDataset>(std::move(rows), length, words.padding()->pad_id,
                                        options.attention_mask, texts->labels(), texts->name());
}

LayerAssets PretrainedTokenizerLayer::assets() const {
  if (!tokenizer_) return {};
  return {{tokenizer_asset, tokenizer_->to_json()}};
}

void PretrainedTokenizerLayer::load_assets(const LayerAssets& assets) {
  const auto file = assets.find(tokenizer_asset);
  if (assets.size() != 1 || file == assets.end()) return Layer::load_assets(assets);
  set_tokenizer(Tokenizer::from_json(file->second, str(where(), ", ", tokenizer_asset)));
}

LayerHandle tokenizer_from_config(JsonObject& config) {
  const auto options = layer_options_from<PretrainedTokenizerOptions>(config);
  return LayerHandle(
      std::shared_ptr<Layer>(std::make_shared<PretrainedTokenizerLayer>(std::nullopt, options)));
}

const RegisteredLayer registered_pretrained_tokenizer(tokenizer_class, tokenizer_from_config);

const PretrainedTokenizerLayer& tokenizer_layer(const LayerHandle& handle) {
  return static_cast<const PretrainedTokenizerLayer&>(*handle.layer());
}

}  // namespace

PretrainedTokenizer::PretrainedTokenizer(const Tokenizer& tokenizer,
                                         const PretrainedTokenizerOptions& options)
    : LayerHandle(
          std::shared_ptr<Layer>(std::make_shared<PretrainedTokenizerLayer>(tokenizer, options))) {}

PretrainedTokenizer::PretrainedTokenizer(const std::shared_ptr<TextLayer>& layer)
    : LayerHandle(std::shared_ptr<Layer>(layer)) {
  if (dynamic_cast<PretrainedTokenizerLayer*>(layer.get())) return;
  throw ConfigError(tokenizer_class, "a layer of this class", layer ? layer->class_name() : "null",
                    "pass a layer that a PretrainedTokenizer made");
}

const Tokenizer& PretrainedTokenizer::tokenizer() const {
  return tokenizer_layer(*this).tokenizer();
}

TokenBatch PretrainedTokenizer::encode(std::span<const std::string_view> texts) const {
  return tokenizer_layer(*this).encode(texts);
}

TokenBatch PretrainedTokenizer::encode(const std::vector<std::string>& texts) const {
  return encode(std::vector<std::string_view>(texts.begin(), texts.end()));
}

std::shared_ptr<const Dataset> PretrainedTokenizer::dataset(
    const TextDataHandle& texts, const TokenDatasetOptions& options) const {
  return tokenizer_layer(*this).dataset(texts, options);
}

}  // namespace tessera
