#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/layers/preprocessing/feature_space.hpp>

namespace tessera::detail {

/// Throws ConfigError naming `where` unless an option is one of those.
void check_known(const std::string& where, const std::string& option, const std::string& given,
                 const std::vector<std::string>& known);
/// The name of the layer of a feature of this name.
std::string preprocessor_name(const std::string& feature);
/// The configuration of an object of a class beside Keras' FeatureSpace.
Json feature_space_json(const std::string& class_name, const Json& config);
/// The class of Keras' layer for numbers that stay as they are; there is none here.
constexpr const char* identity_class = "TFDIdentity";

/// One feature of a space, and what it learned.
struct ColumnFeature {
  std::string name;
  FeatureSpace::Feature feature;
  /// The feature's layer, once adapted one of equal options that has what it learned as options, so
  /// that it has no weights; null for none.
  std::shared_ptr<Layer> layer;

  bool is_text() const { return feature.dtype() == "string"; }
  std::string where() const { return "FeatureSpace, feature " + in_quotes(name); }
  /// The column (rows, columns) as the feature takes it. Throws ConfigError for texts.
  at::Tensor numbers(const Table& table) const;
  /// Throws ConfigError for numbers.
  const std::vector<std::string>& texts(const Table& table) const;

  void adapt(const Table& table);
  bool ready() const;
  /// How many categories there are; 0 for numbers.
  int64_t categories() const;
  /// What the layer makes of the column, (rows, columns).
  at::Tensor value(const Table& table) const;
  SymbolicTensor value(const SymbolicTensor& input) const;
  Json config() const;
};

}  // namespace tessera::detail
