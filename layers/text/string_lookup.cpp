#include <tessera/layers/text/string_lookup.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/layers/text/lookup_config.hpp>

namespace tessera {
namespace {

IndexLookupOptions lookup_options(const StringLookupOptions& options) {
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

}  // namespace

StringLookupLayer::StringLookupLayer(const StringLookupOptions& options)
    : LookupLayer("StringLookup", {options.name, options.dtype, options.trainable},
                  lookup_options(options), 1) {}

Json StringLookupLayer::config() const {
  const IndexLookupOptions& options = lookup().options();
  Json json = Layer::config();
  json["max_tokens"] = optional_json(options.max_tokens);
  json["num_oov_indices"] = options.num_oov_indices;
  json["mask_token"] = options.mask_token ? Json(*options.mask_token) : Json(nullptr);
  json["oov_token"] = options.oov_token;
  json["vocabulary"] = vocabulary_json(lookup());
  json["idf_weights"] = idf_weights_json(lookup());
  json["invert"] = options.invert;
  json["output_mode"] = options.output_mode;
  json["pad_to_max_tokens"] = options.pad_to_max_tokens;
  json["sparse"] = false;
  json["encoding"] = "utf-8";
  return json;
}

void StringLookupLayer::check_direction(bool inverts) const {
  check_ready();
  if (lookup().options().invert == inverts) return;
  throw ConfigError(where(), inverts ? "invert is true for a call on indices"
                                     : "invert is false for a call on tokens",
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
  const TextOutput output = lookup().output();
  const bool bag = output != TextOutput::index && output != TextOutput::one_hot;
  if (bag) return bags({tokens}).squeeze(0);
  const at::Tensor each = transform(std::vector<std::string_view>(tokens.begin(), tokens.end()));
  return output == TextOutput::index ? each.squeeze(1) : each;
}

at::Tensor StringLookupLayer::indices(
    const std::vector<std::vector<std::string>>& documents) const {
  check_direction(false);
  const TextOutput output = lookup().output();
  if (output != TextOutput::index && output != TextOutput::one_hot) return bags(documents);
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
  if (output == TextOutput::index) return flat.view({rows, columns});
  if (columns == 1) return flat;
  return flat.view({rows, columns, lookup().depth()});
}

std::vector<std::string> StringLookupLayer::tokens(const at::Tensor& indices) const {
  check_direction(true);
  if (!at::isIntegralType(indices.scalar_type(), /*includeBool=*/false)) {
    throw ConfigError(where(), "indices are whole numbers", indices.toString(),
                      "cast them to int64");
  }
  const at::Tensor flat = indices.to(at::kCPU, at::kLong).contiguous().view({-1});
  std::vector<std::string> result;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    result.push_back(lookup().token(flat.const_data_ptr<int64_t>()[i]));
  }
  return result;
}

StringLookup StringLookup::from_config(JsonObject& config) {
  const LayerOptions base = take_layer_options(config);
  // Keras counts the vocabulary here, and "oov_method" is for numbers.
  config.take_optional<Json>("vocabulary_size");
  config.take_optional<Json>("oov_method");
  take_nulls(config, {"salt"});
  return StringLookup({.max_tokens = config.take_optional<int64_t>("max_tokens"),
                       .num_oov_indices = config.take_or<int64_t>("num_oov_indices", 1),
                       .mask_token = config.take_optional<std::string>("mask_token"),
                       .oov_token = config.take_or<std::string>("oov_token", "[UNK]"),
                       .vocabulary = take_vocabulary(config),
                       .idf_weights = take_idf_weights(config),
                       .invert = config.take_or("invert", false),
                       .output_mode = config.take_or<std::string>("output_mode", "int"),
                       .pad_to_max_tokens = config.take_or("pad_to_max_tokens", false),
                       .sparse = config.take_or("sparse", false),
                       .encoding = config.take_or<std::string>("encoding", "utf-8"),
                       .name = base.name,
                       .dtype = base.dtype,
                       .trainable = base.trainable});
}

}  // namespace tessera
