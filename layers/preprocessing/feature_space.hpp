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
  std::optional<int64_t> max_tokens = std::nullopt;  ///< most indices; no limit if absent
  int64_t num_oov_indices = 1;                       ///< indices of unknown values
  std::string output_mode = "one_hot";               ///< "int" or "one_hot"
  std::string name = "";                             ///< begins the name of its layer
};

/// The options of a feature that is hashed.
struct HashedFeatureOptions {
  std::string output_mode = "one_hot";  ///< "int" or "one_hot"
  std::string name = "";                ///< begins the name of its layer
};

/// The options of a feature that is cut into bins.
struct DiscretizedFeatureOptions {
  std::optional<int64_t> num_bins = std::nullopt;  ///< bins for FeatureSpace::adapt() to make
  std::vector<double> bin_boundaries = {};         ///< boundaries, in place of num_bins
  std::string output_mode = "one_hot";             ///< "int" or "one_hot"
  std::string name = "";                           ///< begins the name of its layer
};

struct FeatureSpaceOptions;

/// Columns of a table as numbers for a model (keras.utils.FeatureSpace): each is rescaled,
/// normalized, cut into bins, looked up or hashed, combinations of some are hashed, categories
/// become rows of 0 and 1, and all are joined in the order of their names, crosses last.
///
///     FeatureSpace space({.features = {{"age", FeatureSpace::float_normalized()},
///                                      {"sex", "integer_categorical"},
///                                      {"thal", "string_categorical"}},
///                         .crosses = {FeatureSpace::cross({"sex", "thal"}, 64)}});
///     space.adapt(table);
///     model.fit(space.dataset(table, target));
///
/// It works on the host, before a model. For one that takes the columns themselves call it on
/// inputs:
///
///     Input age({1}), sex({1}, {.dtype = "int64"});
///     Functional whole({age, sex}, {model(space({{"age", age}, {"sex", sex}}))});
class FeatureSpace {
 public:
  /// What is made of a column. A text names one of Keras' features with its defaults: "float",
  /// "float_rescaled", "float_normalized", "float_discretized", "integer_categorical",
  /// "string_categorical", "integer_hashed", "string_hashed".
  class Feature {
   public:
    Feature(const char* kind) : kind_(kind) {}             // NOLINT: reads as data
    Feature(std::string kind) : kind_(std::move(kind)) {}  // NOLINT
    /// See FeatureSpace::feature().
    Feature(std::string dtype, std::shared_ptr<Layer> preprocessor, std::string output_mode);
    /// "" unless it was made of a text.
    const std::string& kind() const { return kind_; }
    /// "float32", "int32" or "string".
    const std::string& dtype() const { return dtype_; }
    /// Null for numbers that stay as they are.
    const std::shared_ptr<Layer>& preprocessor() const { return preprocessor_; }
    /// "float", "int" or "one_hot".
    const std::string& output_mode() const { return output_mode_; }

   private:
    std::string kind_, dtype_, output_mode_;
    std::shared_ptr<Layer> preprocessor_;
  };

  /// Features whose combinations are hashed.
  class Cross {
   public:
    Cross(std::vector<std::string> feature_names,  // NOLINT: reads as data
          std::optional<int64_t> crossing_dim = std::nullopt, std::string output_mode = "one_hot");
    /// The features' names, joined by "_X_".
    std::string name() const;
    const std::vector<std::string>& feature_names() const { return feature_names_; }
    /// Absent for that of the space.
    const std::optional<int64_t>& crossing_dim() const { return crossing_dim_; }
    const std::string& output_mode() const { return output_mode_; }

   private:
    std::vector<std::string> feature_names_;
    std::optional<int64_t> crossing_dim_;
    std::string output_mode_;
  };

  /// Numbers as they are (Keras' FeatureSpace.float).
  static Feature float_();
  /// x · scale + offset.
  static Feature float_rescaled(double scale = 1, double offset = 0, const std::string& name = "");
  /// (x - mean) / deviation, learned by adapt().
  static Feature float_normalized(const std::string& name = "");
  /// The bins of numbers, by given boundaries or num_bins learned ones.
  static Feature float_discretized(const DiscretizedFeatureOptions& options);
  /// Whole numbers of a vocabulary that adapt() learns.
  static Feature integer_categorical(const CategoricalFeatureOptions& options = {});
  /// Texts of a vocabulary that adapt() learns.
  static Feature string_categorical(const CategoricalFeatureOptions& options = {});
  /// Whole numbers, hashed into bins.
  static Feature integer_hashed(int64_t num_bins, const HashedFeatureOptions& options = {});
  /// Texts, hashed into bins.
  static Feature string_hashed(int64_t num_bins, const HashedFeatureOptions& options = {});
  /// A column of "float32", "int32" or "string" through a layer of those above, or another one
  /// without weights; "one_hot" needs one whose number of categories is known. Throws ConfigError
  /// for another dtype or output_mode.
  static Feature feature(const std::string& dtype, const LayerHandle& preprocessor,
                         const std::string& output_mode);
  /// The combinations of features, hashed into crossing_dim bins, those of the space if absent.
  static Cross cross(const std::vector<std::string>& feature_names,
                     std::optional<int64_t> crossing_dim = std::nullopt,
                     const std::string& output_mode = "one_hot");

  /// Throws ConfigError for no features, an unknown one, or crosses of features that are not there.
  explicit FeatureSpace(const FeatureSpaceOptions& options);
  /// Makes what config() wrote, or Keras. Throws ConfigError.
  static FeatureSpace from_config(JsonObject& config);
  /// Keras' configuration; with what adapt() learned, so that it need not be called again.
  Json config() const;

  /// Learns vocabularies, bins, means and variances from the columns of a table, the same on every
  /// process, and forgets those before. Throws ConfigError for a column that is missing or of
  /// another kind.
  void adapt(const Table& table) const;

  /// The features of a table's rows, float32 (rows, width()). Throws StateError before adapt(),
  /// ConfigError for a column that is missing, and where output_mode is "dict".
  at::Tensor operator()(const Table& table) const;
  /// Each feature of a table's rows by its name, (rows, columns).
  Table features(const Table& table) const;
  /// Data to train on: the features, and labels for each row; in "dict" mode an input for each
  /// feature, in the order of their names. All are computed here, once.
  DatasetHandle dataset(const Table& table, const at::Tensor& labels = {}) const;
  /// The features of inputs (batch, 1), by the names of all columns, in a model. Throws ConfigError
  /// for a column of texts, which are no tensors.
  SymbolicTensor operator()(const std::map<std::string, SymbolicTensor>& inputs) const;
  /// Columns of all features together. Throws StateError before adapt().
  int64_t width() const;

 private:
  std::shared_ptr<detail::FeatureTable> table_;
};

/// The options of FeatureSpace.
struct FeatureSpaceOptions {
  /// What is made of each column, by its name.
  std::vector<std::pair<std::string, FeatureSpace::Feature>> features = {};
  std::string output_mode = "concat";  ///< "concat" for one tensor, "dict" for one of each feature
  std::vector<FeatureSpace::Cross> crosses = {};  ///< combinations that are features too
  int64_t crossing_dim = 32;                      ///< bins of crosses that do not say
  int64_t hashing_dim = 32;                       ///< bins of "integer_hashed" and "string_hashed"
  int64_t num_discretization_bins = 32;           ///< bins of "float_discretized"
  std::string name = "";                          ///< what errors call it
};

}  // namespace tessera
