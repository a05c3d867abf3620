#pragma once

#include <optional>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of GaussianDropout.
struct GaussianDropoutOptions {
  std::optional<int64_t> seed = std::nullopt;  ///< folded into the model's stream; absent: none
  std::string name = "";                       ///< first part of the weights' paths
  std::string dtype = "";                      ///< policy; the default one if empty
  bool trainable = true;                       ///< whether training changes the weights
};

/// In training, x times normal numbers of mean 1 and standard deviation sqrt(rate / (1 - rate))
/// (keras.layers.GaussianDropout). They depend on the global index: the same on every mesh.
///
/// Shape: (batch, …) -> (batch, …). The mask stays.
/// Communication: none.
///
///     GaussianDropout(0.2)
class GaussianDropout : public LayerHandle {
 public:
  /// Throws ConfigError unless 0 <= rate < 1.
  explicit GaussianDropout(double rate, const GaussianDropoutOptions& options = {});
};

}  // namespace tessera
