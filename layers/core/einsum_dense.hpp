#pragma once

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

/// The options of EinsumDense.
struct EinsumDenseOptions {
  ActivationHandle activation = {};  ///< applied to the outputs, by Keras' name; none by default
  std::string bias_axes = "";        ///< letters of the output that `bias` has; no bias if empty
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

/// y = activation(einsum(equation, x, kernel) + bias) (keras.layers.EinsumDense). The equation has
/// the form "abc,cd->abd", "...c,cd->...d" or "ab...,bc->ac...".
///
/// Shape: as the equation says, from (batch, …) to (batch, output_shape…), and the axes that dots
/// stand for.
/// Weights: kernel, with the extents of its letters; bias, with those of `bias_axes`, and 1 for
/// other letters of the output after the first of them.
/// Communication: none where the axes that are summed over are whole; where they are sharded, one
/// all-reduce of the output. Axes that the output keeps pass on their sharding. config() holds no
/// layouts: they belong to a mesh.
///
///     EinsumDense("abc,cd->abd", {-1, 64}, {.bias_axes = "d"})   // a Dense(64) of sequences
class EinsumDense : public LayerHandle {
 public:
  /// `output_shape`: without the batch axis and what dots stand for; -1 as in the input. Throws
  /// ConfigError for an equation of another form, other extents, bias axes that the output lacks or
  /// an unknown name.
  EinsumDense(const std::string& equation, const Shape& output_shape,
              const EinsumDenseOptions& options = {});
};

}  // namespace tessera
