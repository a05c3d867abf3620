#pragma once

#include <optional>

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// An activation function as a layer (keras.layers.Activation).
///
/// Shape: (batch, …) -> (batch, …); "glu" halves the last axis. The mask passes through.
/// Communication: none, except for functions along a sharded axis, such as "softmax".
///
///     Activation("gelu")
class Activation : public LayerHandle {
 public:
  /// `activation` by Keras' name, or a function of tensors. Throws ConfigError for an unknown name.
  explicit Activation(const ActivationHandle& activation, const LayerOptions& options = {});
};

/// The options of ELU.
struct ELUOptions {
  double alpha = 1.0;      ///< y tends to -alpha as x tends to -∞
  std::string name = "";   ///< first component of the weights' paths
  std::string dtype = "";  ///< dtype policy (default: the global policy)
  bool trainable = true;   ///< whether training changes the weights
};

/// y = x for x > 0, else alpha (exp(x) - 1) (keras.layers.ELU).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
class ELU : public LayerHandle {
 public:
  explicit ELU(const ELUOptions& options = {});
};

/// The options of LeakyReLU.
struct LeakyReLUOptions {
  double negative_slope = 0.3;  ///< factor of negative x, at least 0
  std::string name = "";        ///< first component of the weights' paths
  std::string dtype = "";       ///< dtype policy (default: the global policy)
  bool trainable = true;        ///< whether training changes the weights
};

/// y = x for x > 0, else negative_slope · x (keras.layers.LeakyReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
class LeakyReLU : public LayerHandle {
 public:
  /// Throws ConfigError for negative_slope < 0.
  explicit LeakyReLU(const LeakyReLUOptions& options = {});
};

/// The options of PReLU.
struct PReLUOptions {
  InitializerHandle alpha_initializer = "zeros";  ///< initializer of `alpha`
  RegularizerHandle alpha_regularizer = {};       ///< penalty on `alpha`
  ConstraintHandle alpha_constraint = {};         ///< constraint on `alpha`
  /// Input axes, from 1 on, along which the slope is shared: {1, 2} for images gives one slope per
  /// channel.
  std::vector<int64_t> shared_axes = {};
  LayoutSpec alpha_layout = {};  ///< layout of `alpha`; overrides the layout map
  std::string name = "";         ///< first component of the weights' paths
  std::string dtype = "";        ///< dtype policy (default: the global policy)
  bool trainable = true;         ///< whether training changes the weights
};

/// y = x for x > 0, else alpha · x with learned slopes (keras.layers.PReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError if an axis after the
/// batch that is not shared has an unknown extent, or another than when built.
/// Weights: alpha, of the input's shape without the batch, 1 along shared axes.
/// Communication: none forward; the gradient of `alpha` is a partial sum over the mesh dimensions
/// that shard the batch and the shared axes. config() omits layouts, which belong to a mesh.
///
///     PReLU({.shared_axes = {1, 2}})   // one slope for each channel of an image
class PReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a shared axis below 1 or an unknown name.
  explicit PReLU(const PReLUOptions& options = {});
};

/// The options of ReLU.
struct ReLUOptions {
  std::optional<double> max_value = std::nullopt;  ///< largest output, at least 0 (default: ∞)
  double negative_slope = 0;                       ///< slope below threshold, at least 0
  double threshold = 0;                            ///< x from which y = x, at least 0
  std::string name = "";                           ///< first component of the weights' paths
  std::string dtype = "";                          ///< dtype policy (default: the global policy)
  bool trainable = true;                           ///< whether training changes the weights
};

/// y = min(x, max_value) for x >= threshold, else negative_slope (x - threshold)
/// (keras.layers.ReLU).
///
/// Shape: (batch, …) -> (batch, …). The mask passes through.
/// Communication: none.
///
///     ReLU({.max_value = 6})
class ReLU : public LayerHandle {
 public:
  /// Throws ConfigError for a negative option.
  explicit ReLU(const ReLUOptions& options = {});
};

/// The options of Softmax.
struct SoftmaxOptions {
  std::vector<int64_t> axis = {-1};  ///< axes over whose elements y sums to 1
  std::string name = "";             ///< first component of the weights' paths
  std::string dtype = "";            ///< dtype policy (default: the global policy)
  bool trainable = true;             ///< whether training changes the weights
};

/// y = exp(x) / sum(exp(x)) over axes (keras.layers.Softmax). A second input, or without one the
/// mask of the first, selects elements: true, or greater than 1/2; it broadcasts to x. Other
/// elements give 0 and count as -1e9 in the sums.
///
/// Shape: (batch, …) -> (batch, …). The mask passes through. Throws ShapeError for an axis that the
/// input lacks and for a mask that does not broadcast.
/// Communication: none if the axes are replicated; if they are sharded, all-reduces of a maximum
/// and a sum.
class Softmax : public LayerHandle {
 public:
  /// Throws ConfigError for no axes.
  explicit Softmax(const SoftmaxOptions& options = {});
};

}  // namespace tessera
