#pragma once

#include <string>
#include <vector>

#include <tessera/framework/data/table.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of HashedCrossing.
struct HashedCrossingOptions {
  std::string output_mode = "int";  ///< "int" or "one_hot"
  bool sparse = false;              ///< there are no sparse tensors: only false
  std::string name = "";            ///< first part of the weights' paths
  /// In "int" mode "int64", as if empty, or "int32"; else a policy, the default one if empty.
  std::string dtype = "";
  bool trainable = true;  ///< whether training changes the weights
};

/// Several features as one: each combination of their values is hashed into one of num_bins bins
/// (keras.layers.HashedCrossing, TensorFlow's sparse.cross_hashed).
///
/// Shape: whole numbers, each input (batch,) or (batch, 1) -> "int" the same shape, "one_hot"
/// (batch, num_bins). They are hashed on the host.
/// Communication: none.
///
///     DTensor bins = HashedCrossing(100)({city, month});
class HashedCrossing : public LayerHandle {
 public:
  /// Throws ConfigError for fewer than 1 bin or an unknown mode.
  explicit HashedCrossing(int64_t num_bins, const HashedCrossingOptions& options = {});

  using LayerHandle::operator();
  /// The bins of columns of texts or whole numbers, on the host: "int" (rows,), "one_hot" (rows,
  /// num_bins).
  at::Tensor operator()(const std::vector<Table::Column>& columns) const;
};

}  // namespace tessera
