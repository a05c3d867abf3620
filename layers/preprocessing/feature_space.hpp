#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/data/table.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

namespace detail {
class FeatureTable;
}  // namespace detail

/// The options of a feature that is looked up in a vocabulary, which FeatureSpace::adapt() learns.
struct CategoricalFeatureOptions {
  std::optional<int64_t> max_tokens = std::nullopt;  ///< maximum vocabulary size (default: none)
  int64_t num_oov_indices = 1;                       ///< number of indices for unknown values
  std::string output_mode = "one_hot";               ///< "int" or "one_hot"
  std::string name = "";                             ///< prefix of its layer's name
};

/// The options of a feature that is hashed.
struct HashedFeatureOptions {
  std::string output_mode = "one_hot";  ///< "int" or "one_hot"
  std::string name = "";                ///< prefix of its layer's name
};

/// The options of a feature that is put into bins.
struct DiscretizedFeatureOptions {
  std::optional<int64_t> num_bins = std::nullopt;  ///< number of bins that adapt() learns
  std::vector<double> bin_boundaries = {};         ///< boundaries, instead of num_bins
  std::string output_mode = "one_hot";             ///< "int" or "one_hot"
  std::string name = "";                           ///< prefix of its layer's name
};

struct FeatureSpaceOptions;

/// Turns the columns of a table into features for a model (keras.utils.FeatureSpace): each is
/// rescaled, normalized, put into bins, looked up or hashed; combinations can be hashed too
/// (crosses); categories are one-hot encoded, and all are concatenated in the order of their names,
/// crosses last.
///
///     FeatureSpace space({.features = {{"age", FeatureSpace::float_normalized()},
///                                      {"sex", "integer_categorical"},
///                                      {"thal", "string_categorical"}},
///                         .crosses = {FeatureSpace::cross({"sex", "thal"}, 64)}});
///     space.adapt(table);
///     model.fit(space.dataset(table, target));
///
/// It runs on the host, before a model. To have the model take the columns themselves, call it on
/// inputs:
///
///     Input age({1}), sex({1}, {.dtype = "int64"});
///     Functional whole({age, sex}, {model(space({{"age", age}, {"sex", sex}}))});
class FeatureSpace {
 public:
  /// How a column is encoded. A string names one of Keras' features with its defaults: "float",
  /// "float_rescaled", "float_normalized", "float_discretized", "integer_categorical",
  /// "string_categorical", "integer_hashed", "string_hashed".
  class Feature {
   public:
    Feature(const char* kind) : kind_(kind) {}             // NOLINT: reads as data
    Feature(std::string kind) : kind_(std::move(kind)) {}  // NOLINT
    /// See FeatureSpace::feature().
    Feature(std::string dtype, std::shared_ptr<Layer> preprocessor, std::string output_mode);
    /// Returns the string it was made from, or "".
    const std::string& kind() const { return kind_; }
    /// Returns "float32", "int32" or "string".
    const std::string& dtype() const { return dtype_; }
    /// Returns the feature's layer; null for numbers that are passed through.
    const std::shared_ptr<Layer>& preprocessor() const { return preprocessor_; }
    /// Returns "float", "int" or "one_hot".
    const std::string& output_mode() const { return output_mode_; }

   private:
    std::string kind_, dtype_, output_mode_;
    std::shared_ptr<Layer> preprocessor_;
  };

  /// A feature cross: the combinations of several features, hashed.
  class Cross {
   public:
    Cross(std::vector<std::string> feature_names,  // NOLINT: reads as data
          std::optional<int64_t> crossing_dim = std::nullopt, std::string output_mode = "one_hot");
    /// Returns the features' names joined by "_X_".
    std::string name() const;
    const std::vector<std::string>& feature_names() const { return feature_names_; }
    /// Returns the number of bins (default: the space's crossing_dim).
    const std::optional<int64_t>& crossing_dim() const { return crossing_dim_; }
    const std::string& output_mode() const { return output_mode_; }

   private:
    std::vector<std::string> feature_names_;
    std::optional<int64_t> crossing_dim_;
    std::string output_mode_;
  };

  /// Passes numbers through (Keras' FeatureSpace.float).
  static Feature float_();
  /// Rescales numbers: x · scale + offset.
  static Feature float_rescaled(double scale = 1, double offset = 0, const std::string& name = "");
  /// Normalizes numbers: (x - mean) / deviation, which adapt() learns.
  static Feature float_normalized(const std::string& name = "");
  /// Puts numbers into bins, with given boundaries or num_bins learned ones.
  static Feature float_discretized(const DiscretizedFeatureOptions& options);
  /// Looks integers up in a vocabulary that adapt() learns.
  static Feature integer_categorical(const CategoricalFeatureOptions& options = {});
  /// Looks texts up in a vocabulary that adapt() learns.
  static Feature string_categorical(const CategoricalFeatureOptions& options = {});
  /// Hashes integers into bins.
  static Feature integer_hashed(int64_t num_bins, const HashedFeatureOptions& options = {});
  /// Hashes texts into bins.
  static Feature string_hashed(int64_t num_bins, const HashedFeatureOptions& options = {});
  /// Passes a column of "float32", "int32" or "string" through one of the layers above, or through
  /// another layer without weights; "one_hot" needs one with a known number of categories. Throws
  /// ConfigError for another dtype or output_mode.
  static Feature feature(const std::string& dtype, const LayerHandle& preprocessor,
                         const std::string& output_mode);
  /// Hashes the combinations of features into crossing_dim bins (default: the space's).
  static Cross cross(const std::vector<std::string>& feature_names,
                     std::optional<int64_t> crossing_dim = std::nullopt,
                     const std::string& output_mode = "one_hot");

  /// Throws ConfigError for no features, an unknown one, or crosses of unknown features.
  explicit FeatureSpace(const FeatureSpaceOptions& options);
  /// Makes a space from a configuration that config() or Keras wrote. Throws ConfigError.
  static FeatureSpace from_config(JsonObject& config);
  /// Returns Keras' configuration, including what adapt() learned, so that it need not run again.
  Json config() const;

  /// Learns vocabularies, bins, means and variances from the columns of a table, the same on every
  /// process; replaces earlier ones. Throws ConfigError for a column that is missing or of another
  /// kind.
  void adapt(const Table& table) const;

  /// Returns the features of a table's rows, float32 (rows, width()). Throws StateError before
  /// adapt(), ConfigError for a missing column and if output_mode is "dict".
  at::Tensor operator()(const Table& table) const;
  /// Returns each feature of a table's rows by its name, (rows, columns).
  Table features(const Table& table) const;
  /// Returns a dataset of the features, with a label for each row; in "dict" mode with one input
  /// for each feature, in the order of their names. All features are computed here, once.
  DatasetHandle dataset(const Table& table, const at::Tensor& labels = {}) const;
  /// Returns the features of inputs (batch, 1) in a model, given by column name. Throws ConfigError
  /// for a column of texts, which are no tensors.
  SymbolicTensor operator()(const std::map<std::string, SymbolicTensor>& inputs) const;
  /// Returns the number of columns of all features together. Throws StateError before adapt().
  int64_t width() const;

 private:
  std::shared_ptr<detail::FeatureTable> table_;
};

/// The options of FeatureSpace.
struct FeatureSpaceOptions {
  /// How each column is encoded, by its name.
  std::vector<std::pair<std::string, FeatureSpace::Feature>> features = {};
  std::string output_mode = "concat";  ///< "concat" for one tensor, "dict" for one of each feature
  std::vector<FeatureSpace::Cross> crosses = {};  ///< combinations of features to add
  int64_t crossing_dim = 32;                      ///< default number of bins of crosses
  int64_t hashing_dim = 32;                       ///< bins of "integer_hashed" and "string_hashed"
  int64_t num_discretization_bins = 32;           ///< bins of "float_discretized"
  std::string name = "";                          ///< name in error messages
};

}  // namespace tessera
