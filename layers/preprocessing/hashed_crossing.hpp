#pragma once

#include <string>
#include <vector>

#include <tessera/framework/data/table.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of HashedCrossing.
struct HashedCrossingOptions {
  std::string output_mode = "int";  ///< "int" or "one_hot"
  bool sparse = false;              ///< must be false: there are no sparse tensors
  std::string name = "";            ///< first component of the weights' paths
  /// "int64" (default) or "int32" in "int" mode; otherwise a dtype policy (default: global).
  std::string dtype = "";
  bool trainable = true;  ///< whether training changes the weights
};

/// Crosses several features into one: hashes each combination of their values into one of num_bins
/// bins (keras.layers.HashedCrossing, TensorFlow's sparse.cross_hashed).
///
/// Shape: integers, each input (batch,) or (batch, 1) -> "int" the same shape, "one_hot" (batch,
/// num_bins). Hashed on the host.
/// Communication: none.
///
///     DTensor bins = HashedCrossing(100)({city, month});
class HashedCrossing : public LayerHandle {
 public:
  /// Throws ConfigError for fewer than 1 bin or an unknown mode.
  explicit HashedCrossing(int64_t num_bins, const HashedCrossingOptions& options = {});

  using LayerHandle::operator();
  /// Returns the bins of columns of texts or integers, on the host: "int" (rows,), "one_hot" (rows,
  /// num_bins).
  at::Tensor operator()(const std::vector<Table::Column>& columns) const;
};

}  // namespace tessera
