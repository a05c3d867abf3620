#pragma once

#include <map>
#include <string>
#include <vector>

#include <tessera/layers/preprocessing/internal/column_feature.hpp>

namespace tessera::detail {

/// Implementation of FeatureSpace.
class FeatureTable {
 public:
  explicit FeatureTable(const FeatureSpaceOptions& options);

  const FeatureSpaceOptions& options() const { return options_; }
  std::string where() const { return "FeatureSpace " + options_.name; }
  void adapt(const Table& table);
  Table features(const Table& table) const;
  SymbolicTensor concatenated(const std::map<std::string, SymbolicTensor>& inputs) const;
  int64_t width() const;
  Json config() const;
  /// Throws ConfigError unless output_mode is "concat".
  void check_concat() const;

 private:
  /// A feature or a cross, as numbers to encode.
  struct Encoding {
    std::string name, mode;
    int64_t categories = 0;
  };
  std::vector<Encoding> encodings() const;
  void check_encodings() const;
  void check_ready() const;
  int64_t bins(const FeatureSpace::Cross& cross) const {
    return cross.crossing_dim().value_or(options_.crossing_dim);
  }
  size_t find(const std::string& name) const;

  FeatureSpaceOptions options_;
  std::vector<ColumnFeature> columns_;        ///< in the order of their names
  std::vector<FeatureSpace::Cross> crosses_;  ///< in the order of their names
};

}  // namespace tessera::detail
