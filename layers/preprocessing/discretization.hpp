#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/data/dataset.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Discretization.
struct DiscretizationOptions {
  std::vector<double> bin_boundaries = {};         ///< ascending; adapt() learns them if empty
  std::optional<int64_t> num_bins = std::nullopt;  ///< number of bins that adapt() learns
  double epsilon = 0.01;                           ///< error of the quantiles that adapt() learns
  std::string output_mode = "int";                 ///< "int", "one_hot", "multi_hot" or "count"
  bool sparse = false;                             ///< must be false: there are no sparse tensors
  std::string name = "";                           ///< first component of the weights' paths
  std::string dtype = "";                          ///< dtype policy (default: the global policy)
  bool trainable = true;                           ///< whether training changes the weights
};

/// Returns the bin number of each value (keras.layers.Discretization): n boundaries b make n + 1
/// bins [b_i, b_(i+1)), the first and last unbounded; NaN goes to the last bin.
///
/// Shape: "int" (batch, …) -> (batch, …) int32; other modes as CategoryEncoding, with as many
/// columns as bins.
/// Communication: none, unless the last axis is sharded in a mode other than "int" and "one_hot".
///
///     Discretization age({.bin_boundaries = {18, 30, 65}});
class Discretization : public LayerHandle {
 public:
  /// Throws ConfigError unless exactly one of bin_boundaries and num_bins is given, and for
  /// boundaries that are not ascending or an epsilon outside (0, 1).
  explicit Discretization(const DiscretizationOptions& options);

  /// Learns the boundaries of num_bins bins that hold about equally many values; replaces earlier
  /// ones. Throws StateError if bin_boundaries were given, ConfigError for no values.
  void adapt(const at::Tensor& data) const;
  /// Learns from the first input of a dataset, 1024 rows at a time. Every process reads all rows.
  void adapt(const DatasetHandle& data) const;
  /// Discards the counts, at the start of an adapt() in steps.
  void reset_state() const;
  /// Counts more values during an adapt() in steps.
  void update_state(const at::Tensor& data) const;
  /// Computes the boundaries from the counts, at the end of an adapt() in steps.
  void finalize_state() const;

  /// Returns the boundaries, given or learned; none before adapt().
  const std::vector<double>& bin_boundaries() const;
};

}  // namespace tessera
