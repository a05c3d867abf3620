#pragma once

#include <functional>
#include <optional>
#include <string>

#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// Options of Lambda.
struct LambdaOptions {
  std::optional<Shape> output_shape =
      std::nullopt;  ///< without the batch (default: found by a call)
  /// Whether a training step may replay the function's operations without calling it again, see
  /// Layer::can_be_replayed(): it does nothing but call operations.
  bool can_be_replayed = false;
  std::string name = "";   ///< the layer's name
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights; a Lambda has none
};

/// Applies a function (keras.layers.Lambda). A model that contains one can be trained, and its
/// weights can be saved; saving the model throws ConfigError, because a file cannot contain the
/// function. A class derived from Layer can be saved.
///
/// Shape: the function's. Floating inputs are cast to the compute dtype.
/// Communication: that of the function's operations.
///
///     Lambda([](const DTensor& x) { return ops::square(x); }, {.can_be_replayed = true})
class Lambda : public LayerHandle {
 public:
  /// Throws ConfigError for an empty function.
  explicit Lambda(std::function<DTensor(const DTensor&)> function,
                  const LambdaOptions& options = {});
};

}  // namespace tessera
