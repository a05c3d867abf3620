#pragma once

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of EinsumDense.
struct EinsumDenseOptions {
  ActivationHandle activation = {};  ///< Keras' name of the output activation (default: none)
  std::string bias_axes = "";        ///< output letters that `bias` has (default: no bias)
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

/// A dense layer given by an einsum equation, y = activation(einsum(equation, x, kernel) + bias)
/// (keras.layers.EinsumDense). The equation has the form "abc,cd->abd", "...c,cd->...d" or
/// "ab...,bc->ac...".
///
/// Shape: (batch, …) -> (batch, output_shape…) by the equation; axes that "..." stands for are
/// kept.
/// Weights: kernel, with the extents of its letters; bias, with those of `bias_axes`, and 1 for the
/// other output letters that follow the first of them.
/// Communication: none if the axes that are summed over are replicated; if they are sharded, one
/// all-reduce of the output. Axes that the output keeps also keep their sharding. config() omits
/// layouts, which belong to a mesh.
///
///     EinsumDense("abc,cd->abd", {-1, 64}, {.bias_axes = "d"})   // a Dense(64) of sequences
class EinsumDense : public LayerHandle {
 public:
  /// `output_shape`: without the batch axis and the axes of "..."; -1 takes the input's extent.
  /// Throws ConfigError for an equation of another form, an extent below 1 other than -1, bias axes
  /// that the output lacks or an unknown name.
  EinsumDense(const std::string& equation, const Shape& output_shape,
              const EinsumDenseOptions& options = {});
};

}  // namespace tessera
