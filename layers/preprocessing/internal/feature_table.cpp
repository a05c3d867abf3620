#include <tessera/layers/preprocessing/internal/feature_table.hpp>

#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/layers/merging/merge.hpp>
#include <tessera/layers/preprocessing/category_encoding.hpp>
#include <tessera/layers/preprocessing/hashed_crossing.hpp>
#include <tessera/layers/preprocessing/internal/category_output.hpp>

namespace tessera::detail {
namespace {

using Feature = FeatureSpace::Feature;
using Cross = FeatureSpace::Cross;

const std::vector<std::string>& feature_kinds() {
  static const std::vector<std::string> kinds = {"float",
                                                 "float_rescaled",
                                                 "float_normalized",
                                                 "float_discretized",
                                                 "integer_categorical",
                                                 "string_categorical",
                                                 "integer_hashed",
                                                 "string_hashed"};
  return kinds;
}

/// Returns the feature with its layer, which is made here if a string names its kind.
Feature made_feature(const std::string& name, const Feature& feature,
                     const FeatureSpaceOptions& options) {
  const std::string& kind = feature.kind();
  if (kind.empty()) return feature;
  check_known("FeatureSpace " + options.name, "feature " + in_quotes(name), kind, feature_kinds());
  if (kind == "float") return FeatureSpace::float_();
  if (kind == "float_rescaled") return FeatureSpace::float_rescaled(1, 0, name);
  if (kind == "float_normalized") return FeatureSpace::float_normalized(name);
  if (kind == "float_discretized") {
    return FeatureSpace::float_discretized(
        {.num_bins = options.num_discretization_bins, .name = name});
  }
  if (kind == "integer_categorical") return FeatureSpace::integer_categorical({.name = name});
  if (kind == "string_categorical") return FeatureSpace::string_categorical({.name = name});
  if (kind == "integer_hashed") {
    return FeatureSpace::integer_hashed(options.hashing_dim, {.name = name});
  }
  return FeatureSpace::string_hashed(options.hashing_dim, {.name = name});
}

}  // namespace

FeatureTable::FeatureTable(const FeatureSpaceOptions& options)
    : options_(options), crosses_(options.crosses) {
  check_known(where(), "output_mode", options.output_mode, {"concat", "dict"});
  if (options.features.empty()) {
    throw ConfigError(where(), "at least one feature", "none", "name the columns in `features`");
  }
  for (auto& [name, feature] : options_.features) {
    feature = made_feature(name, feature, options_);
    columns_.push_back({name, feature, feature.preprocessor()});
  }
  std::sort(columns_.begin(), columns_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::sort(crosses_.begin(), crosses_.end(),
            [](const Cross& a, const Cross& b) { return a.name() < b.name(); });
  check_encodings();
}

void FeatureTable::check_encodings() const {
  std::vector<std::string> names;
  for (const Encoding& encoding : encodings()) {
    names.push_back(encoding.name);
    if (std::count(names.begin(), names.end(), encoding.name) > 1) {
      throw ConfigError(where(), "each feature once", in_quotes(encoding.name) + " twice",
                        "leave out the second");
    }
    if (encoding.mode == "int" && options_.output_mode == "concat") {
      throw ConfigError(where(), "concatenated features are numbers or one-hot",
                        in_quotes(encoding.name) + " with output_mode \"int\"",
                        "make it \"one_hot\", or the space's output_mode \"dict\"");
    }
  }
  for (const Cross& cross : crosses_) {
    if (cross.feature_names().size() < 2 || bins(cross) < 1) {
      throw ConfigError(where(), "a cross has at least two features and one bin",
                        in_quotes(cross.name()), "name the features that are combined");
    }
    for (const std::string& name : cross.feature_names()) find(name);
  }
}

size_t FeatureTable::find(const std::string& name) const {
  std::vector<std::string> known;
  for (const ColumnFeature& column : columns_) {
    if (column.name == name) return known.size();
    known.push_back(column.name);
  }
  throw ConfigError(where(), "crosses name existing features", in_quotes(name),
                    suggestion(name, known));
}

std::vector<FeatureTable::Encoding> FeatureTable::encodings() const {
  std::vector<Encoding> all;
  for (const ColumnFeature& column : columns_) {
    all.push_back({column.name, column.feature.output_mode(), column.categories()});
  }
  for (const Cross& cross : crosses_) {
    all.push_back({cross.name(), cross.output_mode(), bins(cross)});
  }
  return all;
}

void FeatureTable::adapt(const Table& table) {
  for (ColumnFeature& column : columns_) column.adapt(table);
}

void FeatureTable::check_ready() const {
  for (const ColumnFeature& column : columns_) {
    if (column.ready()) continue;
    throw StateError(where(), "all features are adapted",
                     str("feature ", in_quotes(column.name), " has learned nothing"),
                     "call adapt() first");
  }
  for (const Encoding& encoding : encodings()) {
    if (encoding.mode != "one_hot" || encoding.categories > 0) continue;
    throw ConfigError(where(), "the number of categories of a one-hot feature is known",
                      in_quotes(encoding.name), "give it output_mode \"float\" or \"int\"");
  }
}

void FeatureTable::check_concat() const {
  if (options_.output_mode == "concat") return;
  throw ConfigError(where(), "output_mode is \"concat\" for one tensor", "\"dict\"",
                    "call features() for one tensor of each feature");
}

Table FeatureTable::features(const Table& table) const {
  check_ready();
  std::vector<at::Tensor> values;
  for (const ColumnFeature& column : columns_) values.push_back(column.value(table));
  for (const Cross& cross : crosses_) {
    std::vector<Table::Column> crossed;
    for (const std::string& name : cross.feature_names()) crossed.emplace_back(values[find(name)]);
    values.push_back(HashedCrossing(bins(cross), {.name = cross.name()})(crossed).unsqueeze(1));
  }
  Table result;
  for (const Encoding& encoding : encodings()) {
    const at::Tensor& value = values[result.names().size()];
    if (encoding.mode == "one_hot") {
      result.add(encoding.name,
                 encoded(value.to(at::kLong), "multi_hot", encoding.categories, at::kFloat));
    } else {
      result.add(encoding.name, value.to(encoding.mode == "int" ? at::kLong : at::kFloat));
    }
  }
  return result;
}

SymbolicTensor FeatureTable::concatenated(
    const std::map<std::string, SymbolicTensor>& inputs) const {
  check_concat();
  check_ready();
  std::vector<SymbolicTensor> values;
  for (const ColumnFeature& column : columns_) {
    const auto input = inputs.find(column.name);
    if (input == inputs.end()) {
      throw ConfigError(where(), "an input for each column", "none for " + in_quotes(column.name),
                        "give an Input({1}) of that name");
    }
    values.push_back(column.value(input->second));
  }
  for (const Cross& cross : crosses_) {
    std::vector<SymbolicTensor> crossed;
    for (const std::string& name : cross.feature_names()) crossed.push_back(values[find(name)]);
    values.push_back(HashedCrossing(bins(cross), {.name = cross.name()})(crossed));
  }
  const std::vector<Encoding> all = encodings();
  for (size_t i = 0; i < values.size(); ++i) {
    if (all[i].mode == "one_hot") values[i] = CategoryEncoding(all[i].categories)(values[i]);
  }
  return values.size() == 1 ? values[0] : Concatenate()(values);
}

int64_t FeatureTable::width() const {
  check_ready();
  int64_t columns = 0;
  for (const Encoding& encoding : encodings()) {
    columns += encoding.mode == "one_hot" ? encoding.categories : 1;
  }
  return columns;
}

Json FeatureTable::config() const {
  Json features = Json::object(), crosses = Json::array();
  for (const auto& feature : options_.features) {
    features[feature.first] = columns_[find(feature.first)].config();
  }
  for (const Cross& cross : options_.crosses) {
    crosses.push_back(feature_space_json("Cross", {{"feature_names", cross.feature_names()},
                                                   {"crossing_dim", bins(cross)},
                                                   {"output_mode", cross.output_mode()}}));
  }
  return {{"features", features},
          {"output_mode", options_.output_mode},
          {"crosses", crosses},
          {"crossing_dim", options_.crossing_dim},
          {"hashing_dim", options_.hashing_dim},
          {"num_discretization_bins", options_.num_discretization_bins}};
}

}  // namespace tessera::detail
