#pragma once

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of Dense.
struct DenseOptions {
  ActivationHandle activation = {};  ///< applied to the outputs, by Keras' name; none by default
  bool use_bias = true;              ///< adds `bias`
  InitializerHandle kernel_initializer = "glorot_uniform";  ///< first values of `kernel`
  InitializerHandle bias_initializer = "zeros";             ///< first values of `bias`
  RegularizerHandle kernel_regularizer = {};                ///< penalty on `kernel`
  RegularizerHandle bias_regularizer = {};                  ///< penalty on `bias`
  RegularizerHandle activity_regularizer = {};  ///< penalty on the output, divided by the rows
  ConstraintHandle kernel_constraint = {};      ///< what `kernel` is brought back to
  ConstraintHandle bias_constraint = {};        ///< what `bias` is brought back to
  LayoutSpec kernel_layout = {};                ///< layout of `kernel`, over any layout map
  LayoutSpec bias_layout = {};                  ///< layout of `bias`, over any layout map
  std::string name = "";                        ///< first part of the weights' paths
  std::string dtype = "";                       ///< policy; the default one if empty
  bool trainable = true;                        ///< whether training changes the weights
};

/// A fully connected layer, y = activation(x · kernel + bias) over the last axis of x
/// (keras.layers.Dense).
///
/// Shape: (batch, …, in) -> (batch, …, units).
/// Weights: kernel (in, units), bias (units).
/// Communication: none if `kernel` is whole or sharded on `units`; sharded on `in`, as the last
/// axis of x then is, one all-reduce of the output. config() holds no layouts: they belong to a
/// mesh.
///
///     Dense(128, {.activation = "relu", .name = "hidden"})
class Dense : public LayerHandle {
 public:
  /// `units` outputs. Throws ConfigError for units < 1 or an unknown name.
  explicit Dense(int64_t units, const DenseOptions& options = {});
};

}  // namespace tessera
