#pragma once

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Dense.
struct DenseOptions {
  ActivationHandle activation = {};  ///< Keras' name of the output activation (default: none)
  bool use_bias = true;              ///< whether to add `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< initializer of `kernel`
  InitializerHandle bias_initializer = "zeros";             ///< initializer of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};              ///< penalty on the output, per row
  ConstraintHandle kernel_constraint = {};                  ///< constraint on `kernel`
  ConstraintHandle bias_constraint = {};                    ///< constraint on `bias`
  LayoutSpec kernel_layout = {};  ///< layout of `kernel`; overrides the layout map
  LayoutSpec bias_layout = {};    ///< layout of `bias`; overrides the layout map
  std::string name = "";          ///< first component of the weights' paths
  std::string dtype = "";         ///< dtype policy (default: the global policy)
  bool trainable = true;          ///< whether training changes the weights
};

/// A fully connected layer, y = activation(x · kernel + bias) over the last axis of x
/// (keras.layers.Dense).
///
/// Shape: (batch, …, in) -> (batch, …, units).
/// Weights: kernel (in, units), bias (units).
/// Communication: none if `kernel` is replicated or sharded on `units`. If it is sharded on `in`,
/// and the last axis of x with it, one all-reduce of the output. config() omits layouts, which
/// belong to a mesh.
///
///     Dense(128, {.activation = "relu", .name = "hidden"})
class Dense : public LayerHandle {
 public:
  /// `units`: number of output features. Throws ConfigError for units < 1 or an unknown name.
  explicit Dense(int64_t units, const DenseOptions& options = {});
};

}  // namespace tessera
