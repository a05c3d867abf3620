#include <tessera/layers/text/string_lookup.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/layers/text/internal/lookup_config.hpp>
#include <tessera/layers/text/internal/lookup_layer.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(StringLookupOptions& o, const Visit& visit) {
  visit("max_tokens", o.max_tokens);
  visit("num_oov_indices", o.num_oov_indices);
  visit("mask_token", o.mask_token);
  visit("oov_token", o.oov_token);
  visit("vocabulary", o.vocabulary);
  visit("idf_weights", o.idf_weights);
  visit("invert", o.invert);
  visit("output_mode", o.output_mode);
  visit("pad_to_max_tokens", o.pad_to_max_tokens);
  visit("sparse", o.sparse);
  visit("encoding", o.encoding);
}

namespace {

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

  StringLookupOptions options_;  ///< without the vocabulary, which lookup() holds
};

const RegisteredLayer registered_string_lookup("StringLookup", StringLookup::from_config);

IndexLookupOptions string_lookup_options(const StringLookupOptions& options) {
  check_lookup_options(options.sparse, options.encoding);
  return {.max_tokens = options.max_tokens,
          .num_oov_indices = options.num_oov_indices,
          .mask_token = options.mask_token,
          .oov_token = options.oov_token,
          .vocabulary = options.vocabulary,
          .idf_weights = options.idf_weights,
          .invert = options.invert,
          .output_mode = options.output_mode,
          .pad_to_max_tokens = options.pad_to_max_tokens};
}

StringLookupLayer::StringLookupLayer(const StringLookupOptions& options)
    : LookupLayer("StringLookup", common_options(options), string_lookup_options(options), 1),
      options_(options) {
  options_.vocabulary.clear();
  options_.idf_weights.clear();
  options_.encoding = "utf-8";
}

Json StringLookupLayer::config() const {
  Json json = layer_config(*this, Json::object(), options_);
  put_vocabulary(json, lookup());
  return json;
}

void StringLookupLayer::check_direction(bool inverts) const {
  check_ready();
  if (lookup().options().invert == inverts) return;
  throw ConfigError(
      where(),
      inverts ? "invert is true for a call on indices" : "invert is false for a call on tokens",
      inverts ? "false" : "true", "make a second layer for the other direction");
}

void StringLookupLayer::adapt(const std::vector<std::vector<std::string>>& documents) {
  reset_state();
  count(static_cast<int64_t>(documents.size()), [&](int64_t i, Tokens& out) {
    out.clear();
    for (const std::string& token : documents[static_cast<size_t>(i)]) out.add(token);
  });
  finalize_state();
}

at::Tensor StringLookupLayer::bags(const std::vector<std::vector<std::string>>& documents) const {
  const auto size = static_cast<int64_t>(documents.size());
  return rows(size,
              [&](int64_t i, Tokens& out) {
                out.clear();
                for (const auto& token : documents[static_cast<size_t>(i)]) out.add(token);
              })
      .dense();
}

at::Tensor StringLookupLayer::indices(const std::vector<std::string>& tokens) const {
  check_direction(false);
  const TokenEncoding output = lookup().output();
  const bool bag = output != TokenEncoding::index && output != TokenEncoding::one_hot;
  if (bag) return bags({tokens}).squeeze(0);
  const at::Tensor each = transform(std::vector<std::string_view>(tokens.begin(), tokens.end()));
  return output == TokenEncoding::index ? each.squeeze(1) : each;
}

at::Tensor StringLookupLayer::indices(
    const std::vector<std::vector<std::string>>& documents) const {
  check_direction(false);
  const TokenEncoding output = lookup().output();
  if (output != TokenEncoding::index && output != TokenEncoding::one_hot) return bags(documents);
  const size_t width = documents.empty() ? 0 : documents[0].size();
  std::vector<std::string_view> tokens;
  for (const auto& document : documents) {
    if (document.size() != width) {
      throw ShapeError(where(), str("documents of one length, ", width, " tokens"),
                       str(document.size()), "add the mask token to the shorter ones");
    }
    tokens.insert(tokens.end(), document.begin(), document.end());
  }
  const auto rows = static_cast<int64_t>(documents.size());
  const auto columns = static_cast<int64_t>(width);
  const at::Tensor flat = transform(tokens);
  if (output == TokenEncoding::index) return flat.view({rows, columns});
  if (columns == 1) return flat;
  return flat.view({rows, columns, lookup().depth()});
}

std::vector<std::string> StringLookupLayer::tokens(const at::Tensor& indices) const {
  check_direction(true);
  if (!at::isIntegralType(indices.scalar_type(), /*includeBool=*/false)) {
    throw ConfigError(where(), "indices are integers", indices.toString(), "cast them to int64");
  }
  const at::Tensor flat = indices.to(at::kCPU, at::kLong).contiguous().view({-1});
  std::vector<std::string> result;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    result.push_back(lookup().token(flat.const_data_ptr<int64_t>()[i]));
  }
  return result;
}

StringLookupLayer& layer_of(const StringLookup& handle) {
  return static_cast<StringLookupLayer&>(*handle.layer());
}

}  // namespace

StringLookup::StringLookup(const StringLookupOptions& options)
    : LookupHandle(make_lookup<StringLookupLayer>("StringLookup", options)) {}

StringLookup StringLookup::from_config(JsonObject& config) {
  // "vocabulary_size" follows from the vocabulary, and "oov_method" is for numbers.
  config.take_optional<Json>("vocabulary_size");
  config.take_optional<Json>("oov_method");
  take_nulls(config, {"salt"});
  check_vocabulary(config);
  return StringLookup(layer_options_from<StringLookupOptions>(config));
}

void StringLookup::adapt(const std::vector<std::vector<std::string>>& documents) const {
  layer_of(*this).adapt(documents);
}

at::Tensor StringLookup::operator()(const std::vector<std::string>& tokens) const {
  return layer_of(*this).indices(tokens);
}

at::Tensor StringLookup::operator()(std::initializer_list<const char*> tokens) const {
  return layer_of(*this).indices(std::vector<std::string>(tokens.begin(), tokens.end()));
}

at::Tensor StringLookup::operator()(const std::vector<std::vector<std::string>>& documents) const {
  return layer_of(*this).indices(documents);
}

std::vector<std::string> StringLookup::operator()(const at::Tensor& indices) const {
  return layer_of(*this).tokens(indices);
}

}  // namespace tessera
