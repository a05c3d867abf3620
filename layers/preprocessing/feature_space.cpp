#include <tessera/layers/preprocessing/feature_space.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/tensor_dataset.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/layers/preprocessing/discretization.hpp>
#include <tessera/layers/preprocessing/hashing.hpp>
#include <tessera/layers/preprocessing/integer_lookup.hpp>
#include <tessera/layers/preprocessing/internal/column_layer.hpp>
#include <tessera/layers/preprocessing/internal/feature_table.hpp>
#include <tessera/layers/preprocessing/normalization.hpp>
#include <tessera/layers/preprocessing/rescaling.hpp>
#include <tessera/layers/text/internal/lookup_layer.hpp>
#include <tessera/layers/text/string_lookup.hpp>

namespace tessera {

using namespace detail;

namespace {

using Feature = FeatureSpace::Feature;
using Cross = FeatureSpace::Cross;

Feature feature_from(const Json& json, const JsonPath& path) {
  if (json.is_string()) return json.get<std::string>();
  auto [class_name, config] = read_serialized(json, path);
  check_known(path.text(), "the class", class_name, {"Feature"});
  const auto preprocessor = config.take<Json>("preprocessor");
  const JsonPath preprocessor_path = config.path().key("preprocessor");
  std::shared_ptr<Layer> layer;
  if (!preprocessor.is_object() || preprocessor.value("class_name", "") != identity_class) {
    layer = layer_from_config(preprocessor, preprocessor_path).layer();
  }
  const Feature feature(config.take<std::string>("dtype"), layer,
                        config.take<std::string>("output_mode"));
  config.finish();
  return feature;
}

Cross cross_from(const Json& json, const JsonPath& path) {
  if (json.is_array()) return json_as<std::vector<std::string>>(json, path);
  auto [class_name, config] = read_serialized(json, path);
  check_known(path.text(), "the class", class_name, {"Cross"});
  const Cross cross(config.take<std::vector<std::string>>("feature_names"),
                    config.take_optional<int64_t>("crossing_dim"),
                    config.take_or<std::string>("output_mode", "one_hot"));
  config.finish();
  return cross;
}

}  // namespace

FeatureSpace::Feature::Feature(std::string dtype, std::shared_ptr<Layer> preprocessor,
                               std::string output_mode)
    : dtype_(std::move(dtype)),
      output_mode_(std::move(output_mode)),
      preprocessor_(std::move(preprocessor)) {
  check_known("FeatureSpace::feature", "dtype", dtype_, {"float32", "int32", "string"});
  check_known("FeatureSpace::feature", "output_mode", output_mode_, {"float", "int", "one_hot"});
  const auto* const column = dynamic_cast<ColumnLayer*>(preprocessor_.get());
  const bool takes_texts = dynamic_cast<LookupLayer*>(preprocessor_.get()) ||
                           (column && column->class_name() == "Hashing");
  if (dtype_ != "string" || takes_texts) return;
  throw ConfigError("FeatureSpace::feature", "a layer that takes texts",
                    preprocessor_ ? preprocessor_->class_name() : "none",
                    "use StringLookup, TextVectorization or Hashing");
}

FeatureSpace::Cross::Cross(std::vector<std::string> feature_names,
                           std::optional<int64_t> crossing_dim, std::string output_mode)
    : feature_names_(std::move(feature_names)),
      crossing_dim_(crossing_dim),
      output_mode_(std::move(output_mode)) {
  check_known("FeatureSpace::cross", "output_mode", output_mode_, {"int", "one_hot"});
}

std::string FeatureSpace::Cross::name() const {
  std::string joined;
  for (const std::string& name : feature_names_) joined += (joined.empty() ? "" : "_X_") + name;
  return joined;
}

Feature FeatureSpace::float_() { return Feature("float32", nullptr, "float"); }

Feature FeatureSpace::float_rescaled(double scale, double offset, const std::string& name) {
  return feature("float32", Rescaling(scale, {.offset = offset, .name = preprocessor_name(name)}),
                 "float");
}

Feature FeatureSpace::float_normalized(const std::string& name) {
  return feature("float32", Normalization({.name = preprocessor_name(name)}), "float");
}

Feature FeatureSpace::float_discretized(const DiscretizedFeatureOptions& options) {
  return feature("float32",
                 Discretization({.bin_boundaries = options.bin_boundaries,
                                 .num_bins = options.num_bins,
                                 .name = preprocessor_name(options.name)}),
                 options.output_mode);
}

Feature FeatureSpace::integer_categorical(const CategoricalFeatureOptions& options) {
  return feature("int32",
                 IntegerLookup({.max_tokens = options.max_tokens,
                                .num_oov_indices = options.num_oov_indices,
                                .name = preprocessor_name(options.name)}),
                 options.output_mode);
}

Feature FeatureSpace::string_categorical(const CategoricalFeatureOptions& options) {
  return feature("string",
                 StringLookup({.max_tokens = options.max_tokens,
                               .num_oov_indices = options.num_oov_indices,
                               .name = preprocessor_name(options.name)}),
                 options.output_mode);
}

Feature FeatureSpace::integer_hashed(int64_t num_bins, const HashedFeatureOptions& options) {
  return feature("int32", Hashing(num_bins, {.name = preprocessor_name(options.name)}),
                 options.output_mode);
}

Feature FeatureSpace::string_hashed(int64_t num_bins, const HashedFeatureOptions& options) {
  return feature("string", Hashing(num_bins, {.name = preprocessor_name(options.name)}),
                 options.output_mode);
}

Feature FeatureSpace::feature(const std::string& dtype, const LayerHandle& preprocessor,
                              const std::string& output_mode) {
  return Feature(dtype, preprocessor.layer(), output_mode);
}

Cross FeatureSpace::cross(const std::vector<std::string>& feature_names,
                          std::optional<int64_t> crossing_dim, const std::string& output_mode) {
  return Cross(feature_names, crossing_dim, output_mode);
}

FeatureSpace::FeatureSpace(const FeatureSpaceOptions& options)
    : table_(std::make_shared<FeatureTable>(options)) {}

FeatureSpace FeatureSpace::from_config(JsonObject& config) {
  FeatureSpaceOptions options;
  const auto features = config.take<Json>("features");
  const JsonPath path = config.path().key("features");
  if (!features.is_object()) json_fail(features, path, "an object of features");
  for (const auto& [name, feature] : features.items()) {
    options.features.emplace_back(name, feature_from(feature, path.key(name)));
  }
  options.output_mode = config.take_or("output_mode", options.output_mode);
  const Json crosses = config.take_or<Json>("crosses", Json::array());
  const JsonPath crosses_path = config.path().key("crosses");
  if (!crosses.is_array()) json_fail(crosses, crosses_path, "a list of crosses");
  for (size_t i = 0; i < crosses.size(); ++i) {
    options.crosses.push_back(cross_from(crosses[i], crosses_path.index(i)));
  }
  options.crossing_dim = config.take_or("crossing_dim", options.crossing_dim);
  options.hashing_dim = config.take_or("hashing_dim", options.hashing_dim);
  options.num_discretization_bins =
      config.take_or("num_discretization_bins", options.num_discretization_bins);
  return FeatureSpace(options);
}

Json FeatureSpace::config() const { return table_->config(); }
void FeatureSpace::adapt(const Table& table) const { table_->adapt(table); }
Table FeatureSpace::features(const Table& table) const { return table_->features(table); }
int64_t FeatureSpace::width() const { return table_->width(); }

at::Tensor FeatureSpace::operator()(const Table& table) const {
  table_->check_concat();
  return table_->features(table).matrix();
}

DatasetHandle FeatureSpace::dataset(const Table& table, const at::Tensor& labels) const {
  if (table_->options().output_mode == "concat") return {(*this)(table), labels};
  const Table all = features(table);
  Examples examples;
  for (const std::string& name : all.names()) examples.x.push_back(all[name].numbers());
  if (labels.defined()) examples.y = {labels};
  return examples;
}

SymbolicTensor FeatureSpace::operator()(const std::map<std::string, SymbolicTensor>& inputs) const {
  return table_->concatenated(inputs);
}

}  // namespace tessera
