#include <tessera/layers/preprocessing/internal/column_feature.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/preprocessing/internal/column_layer.hpp>
#include <tessera/layers/text/internal/lookup_layer.hpp>

namespace tessera::detail {
namespace {

/// Returns a mesh of the host, where columns are computed whatever the model's mesh is.
const Mesh& host_mesh() {
  static const Mesh mesh = create_mesh({{"rows", 1}});
  return mesh;
}

/// Returns a layer's output for a column on the host.
at::Tensor on_host(Layer& layer, const at::Tensor& column) {
  return layer(pack(column, Layout::replicated(host_mesh(), column.dim()))).full();
}

}  // namespace

void check_known(const std::string& where, const std::string& option, const std::string& value,
                 const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  throw ConfigError(where, option + " is one of " + quoted_list(known), in_quotes(value),
                    suggestion(value, known));
}

std::string preprocessor_name(const std::string& feature) {
  return feature.empty() ? "" : feature + "_preprocessor";
}

Json feature_space_json(const std::string& class_name, const Json& config) {
  return {{"module", "keras.src.layers.preprocessing.feature_space"},
          {"class_name", class_name},
          {"config", config},
          {"registered_name", class_name}};
}

at::Tensor ColumnFeature::numbers(const Table& table) const {
  const Table::Column& column = table[name];
  if (column.is_text()) {
    throw ConfigError(where(), "a column of numbers", "texts",
                      "make it a string_categorical or string_hashed feature");
  }
  const at::Tensor cast = column.numbers().to(feature.dtype() == "int32" ? at::kLong : at::kFloat);
  return cast.dim() == 1 ? cast.unsqueeze(1) : cast;
}

const std::vector<std::string>& ColumnFeature::texts(const Table& table) const {
  const Table::Column& column = table[name];
  if (column.is_text()) return column.texts();
  throw ConfigError(where(), "a column of texts", "numbers",
                    "make it an integer_categorical, integer_hashed or float feature");
}

void ColumnFeature::adapt(const Table& table) {
  const std::shared_ptr<Layer>& preprocessor = feature.preprocessor();
  Json learned;
  if (auto* const lookup = dynamic_cast<LookupLayer*>(preprocessor.get())) {
    if (lookup->lookup().from_options()) return;
    lookup->adapt(TextDataHandle(texts(table)), {});
    learned = {{"vocabulary", lookup->lookup().vocabulary(/*include_special_tokens=*/false)}};
  } else if (auto* const column = dynamic_cast<ColumnLayer*>(preprocessor.get())) {
    if (!column->learns()) return;
    column->learn(numbers(table));
    learned = column->learned();
  } else {
    return;
  }
  Json config = preprocessor->config();
  config.update(learned);
  const Json json = {{"class_name", preprocessor->class_name()}, {"config", config}};
  layer = layer_from_config(json, JsonPath("FeatureSpace")).layer();
}

bool ColumnFeature::ready() const {
  if (const auto* const lookup = dynamic_cast<LookupLayer*>(layer.get())) return lookup->ready();
  const auto* const column = dynamic_cast<ColumnLayer*>(layer.get());
  // A Normalization that learns has weights, which are placed on a model's mesh.
  const bool normalizes = column && column->class_name() == "Normalization";
  return !column || (normalizes ? !column->learns() : column->ready());
}

int64_t ColumnFeature::categories() const {
  if (const auto* const lookup = dynamic_cast<LookupLayer*>(layer.get())) {
    return lookup->lookup().vocabulary_size();
  }
  const auto* const column = dynamic_cast<ColumnLayer*>(layer.get());
  return column ? column->categories() : 0;
}

at::Tensor ColumnFeature::value(const Table& table) const {
  if (!is_text()) {
    const at::Tensor column = numbers(table);
    return layer ? on_host(*layer, column) : column;
  }
  const std::vector<std::string>& all = texts(table);
  if (const auto* const lookup = dynamic_cast<LookupLayer*>(layer.get())) {
    return lookup->transform(std::vector<std::string_view>(all.begin(), all.end()));
  }
  return dynamic_cast<ColumnLayer&>(*layer).text_categories(all).unsqueeze(1);
}

SymbolicTensor ColumnFeature::value(const SymbolicTensor& input) const {
  if (is_text()) {
    throw ConfigError(where(), "columns of numbers in a model", "texts",
                      "call the space on a table, before the model");
  }
  return layer ? LayerHandle(layer)(input) : input;
}

Json ColumnFeature::config() const {
  const Json identity = feature_space_json(
      identity_class,
      {{"name", preprocessor_name(name)}, {"trainable", true}, {"dtype", feature.dtype()}});
  return feature_space_json("Feature", {{"dtype", feature.dtype()},
                                        {"preprocessor", layer ? layer_json(*layer) : identity},
                                        {"output_mode", feature.output_mode()}});
}

}  // namespace tessera::detail
