#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/layers/preprocessing/feature_space.hpp>

namespace tessera::detail {

/// Throws ConfigError naming `where` unless `value` is one of `known`.
void check_known(const std::string& where, const std::string& option, const std::string& value,
                 const std::vector<std::string>& known);
/// Returns the layer's name of a feature.
std::string preprocessor_name(const std::string& feature);
/// Returns the configuration of an object whose class is in the module of Keras' FeatureSpace.
Json feature_space_json(const std::string& class_name, const Json& config);
/// The class of Keras' identity layer, which has no counterpart here.
constexpr const char* identity_class = "TFDIdentity";

/// One feature of a space, with its learned state.
struct ColumnFeature {
  std::string name;
  FeatureSpace::Feature feature;
  /// The feature's layer, or null. adapt() replaces it by one with the same options that holds what
  /// was learned as options, so that it has no weights.
  std::shared_ptr<Layer> layer;

  bool is_text() const { return feature.dtype() == "string"; }
  std::string where() const { return "FeatureSpace, feature " + in_quotes(name); }
  /// Returns the column (rows, columns) in the feature's dtype. Throws ConfigError for texts.
  at::Tensor numbers(const Table& table) const;
  /// Returns the column's texts. Throws ConfigError for numbers.
  const std::vector<std::string>& texts(const Table& table) const;

  void adapt(const Table& table);
  bool ready() const;
  /// Returns the number of categories; 0 for numbers.
  int64_t categories() const;
  /// Returns the layer's output for the column, (rows, columns).
  at::Tensor value(const Table& table) const;
  SymbolicTensor value(const SymbolicTensor& input) const;
  Json config() const;
};

}  // namespace tessera::detail
