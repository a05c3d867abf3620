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
  std::optional<int64_t> num_bins = std::nullopt;  ///< bins for adapt() to make, in their place
  double epsilon = 0.01;            ///< how far quantiles that adapt() learns may be off
  std::string output_mode = "int";  ///< "int", "one_hot", "multi_hot" or "count"
  bool sparse = false;              ///< there are no sparse tensors: only false
  std::string name = "";            ///< first part of the weights' paths
  std::string dtype = "";           ///< policy; the default one if empty
  bool trainable = true;            ///< whether training changes the weights
};

/// The number of the bin that each value lies in (keras.layers.Discretization): n boundaries make
/// n + 1 bins, [b_i, b_(i+1)) and what is outside of all; NaN is in the last.
///
/// Shape: "int" (batch, …) -> (batch, …) int32; other modes as CategoryEncoding, with as many
/// columns as bins.
/// Communication: none in "int" and "one_hot" mode; in others while the last axis is not sharded.
///
///     Discretization age({.bin_boundaries = {18, 30, 65}});
class Discretization : public LayerHandle {
 public:
  /// Throws ConfigError unless bin_boundaries or num_bins is given, and not both; for boundaries
  /// that descend; for an epsilon outside (0, 1).
  explicit Discretization(const DiscretizationOptions& options);

  /// Learns boundaries between num_bins bins of about equally many values, and forgets those
  /// before. Throws StateError if bin_boundaries were given, ConfigError for no values.
  void adapt(const at::Tensor& data) const;
  /// Learns them from the first input of a dataset, 1024 rows at a time. Every process reads all.
  void adapt(const DatasetHandle& data) const;
  /// Forgets what was counted, before an adapt() in steps.
  void reset_state() const;
  /// Counts more values, in an adapt() in steps.
  void update_state(const at::Tensor& data) const;
  /// Makes the boundaries of what was counted, after an adapt() in steps.
  void finalize_state() const;

  /// The boundaries, given or learned; none before adapt().
  const std::vector<double>& bin_boundaries() const;
};

}  // namespace tessera
