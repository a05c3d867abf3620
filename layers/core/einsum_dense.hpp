#pragma once

#include <tessera/framework/nn/activations/activations.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera {

struct EinsumDenseOptions {
  ActivationRef activation = {};
  std::string bias_axes = "";  ///< letters of the output that the bias has; none: no bias
  InitializerHandle kernel_initializer = "glorot_uniform";
  InitializerHandle bias_initializer = "zeros";
  RegularizerHandle kernel_regularizer = {};
  RegularizerHandle bias_regularizer = {};
  RegularizerHandle activity_regularizer = {};  ///< of the output, divided by the rows
  ConstraintHandle kernel_constraint = {};
  ConstraintHandle bias_constraint = {};
  LayoutSpec kernel_layout = {};
  LayoutSpec bias_layout = {};
  std::string name = "";
  std::string dtype = "";
  bool trainable = true;
};

/// y = activation(einsum(equation, x, kernel) + bias) (keras.layers.EinsumDense). The equation has
/// the form "abc,cd->abd", "...c,cd->...d" or "ab...,bc->ac...". Weights: kernel, with the extents
/// of its letters, and bias, with those of `bias_axes`, from the first of them on.
/// Layouts: axes that the output keeps pass on their sharding without communication; cut axes that
/// are summed over cost one all-reduce of the output. config() holds no layouts.
class EinsumDenseLayer final : public Layer {
 public:
  EinsumDenseLayer(const std::string& equation, const Shape& output_shape,
                   const EinsumDenseOptions& options);
  std::string class_name() const override { return "EinsumDense"; }
  Json config() const override;
  /// Throws ShapeError for an input that the equation and the output shape do not fit.
  Shape output_shape(const Shapes& inputs) const override;

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  /// The equation for a rank of input, letters in place of the dots; and the shapes it gives.
  struct Form {
    std::string input, kernel, output;
    Shape kernel_shape, bias_shape, output_shape;
  };
  Form form(const Shape& input) const;
  Form letters(const Shape& input) const;
  Shape bias_shape(const Form& form, size_t extra) const;

  std::string equation_;
  Shape output_shape_;
  EinsumDenseOptions options_;
  std::string input_, kernel_letters_, output_;  ///< terms without dots
  bool dots_left_ = false, dots_right_ = false;
  Variable kernel_, bias_;
};

class EinsumDense : public LayerHandle {
 public:
  /// `output_shape`: without the batch axis and what dots stand for; -1 as in the input. Throws
  /// ConfigError for an equation of another form.
  EinsumDense(const std::string& equation, const Shape& output_shape,
              const EinsumDenseOptions& options = {})
      : LayerHandle(std::make_shared<EinsumDenseLayer>(equation, output_shape, options)) {}
  static EinsumDense from_config(JsonObject& config);
};

}  // namespace tessera
