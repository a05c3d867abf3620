#pragma once

#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/int8.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/int8_kernel.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera::detail {

/// Visits the arguments of an embedding: those of its table, and mask_zero.
template <class Arguments, class Visit>
void embedding_fields(Arguments& a, const Visit& visit) {
  ExtentOption input_dim{a.input_dim}, output_dim{a.output_dim};
  std::nullptr_t none = nullptr;
  visit("input_dim", input_dim);
  visit("output_dim", output_dim);
  visit("embeddings_initializer", a.embeddings_initializer);
  visit("embeddings_regularizer", a.embeddings_regularizer);
  visit("activity_regularizer", none);
  visit("embeddings_constraint", a.embeddings_constraint);
  visit("mask_zero", a.mask_zero);
  QuantizationConfigOption quantization;
  visit("quantization_config", quantization);
}

/// Base of Embedding and ReversibleEmbedding: maps ids to rows of the weight `embeddings`.
template <class Self, class LayerArguments>
class EmbeddingOf : public LayerOf<Self, LayerArguments, LoraLayer> {
  using Base = LayerOf<Self, LayerArguments, LoraLayer>;

 public:
  /// Throws ConfigError for a dimension < 1.
  explicit EmbeddingOf(const LayerArguments& arguments) : Base(arguments) {
    if (arguments.input_dim < 1 || arguments.output_dim < 1) {
      throw ConfigError(this->where(), "input_dim and output_dim are at least 1",
                        str(arguments.input_dim, " and ", arguments.output_dim),
                        "give the number of rows and their extent");
    }
    if (!arguments.embeddings_layout.empty()) {
      this->set_weight_layout("embeddings", arguments.embeddings_layout);
    }
  }
  Shape output_shape(const Shapes& inputs) const override {
    Shape shape = this->single_input(inputs);
    shape.push_back(this->arguments_.output_dim);
    return shape;
  }
  bool supports_masking() const override { return this->arguments_.mask_zero; }
  Json config() const override { return this->with_adapter(Base::config()); }

 protected:
  void make_weights(const Shapes&) override {
    const LayerArguments& a = this->arguments_;
    if (this->is_quantized()) {
      kernel_ = this->add_weight("embeddings", {a.input_dim, a.output_dim}, "zeros",
                                 {.trainable = false, .dtype = at::kChar});
      kernel_scale_ =
          this->add_weight("embeddings_scale", {a.input_dim}, "ones", {.trainable = false});
    } else {
      kernel_ = this->add_weight(
          "embeddings", {a.input_dim, a.output_dim}, a.embeddings_initializer,
          {.regularizer = a.embeddings_regularizer, .constraint = a.embeddings_constraint});
    }
    this->make_configured_adapter();
  }
  void quantize_weights() override {
    const auto [values, scale] = ops::abs_max_quantize(kernel_.value(), {1});
    this->replace_weight(kernel_, values);
    kernel_scale_ =
        this->add_value("embeddings_scale", ops::reshape(scale, {this->arguments_.input_dim}));
  }
  LoraLayer::KernelValues quantized_sum(const DTensor& delta) const override {
    const Int8Kernel sum = int8_sum("d,vd->v", {kernel_.value(), kernel_scale_.value()}, delta);
    return {sum.values, sum.scale};
  }
  RegularizerHandle kernel_regularizer() const override {
    return this->arguments_.embeddings_regularizer;
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    const bool integral = at::isIntegralType(inputs[0].dtype(), /*includeBool=*/false);
    const DTensor ids = integral ? inputs[0] : ops::cast(inputs[0], at::kInt);
    DTensor rows = ops::embedding(this->read(kernel_), ids);
    if (this->is_quantized()) {
      const DTensor scale = ops::gather(this->read(kernel_scale_), ids);
      rows = ops::cast(rows, scale.dtype()) / ops::expand_dims(scale, -1);
    }
    if (!this->has_adapter()) return rows;
    const DTensor narrow = ops::embedding(this->read(this->a()), ids);
    return rows + ops::matmul(narrow, this->read(this->b())) * this->scale();
  }
  std::vector<DTensor> masks(const Inputs& inputs, size_t) override {
    const DTensor& ids = inputs[0];
    return {ops::not_equal(ids, scalar(0, ids.mesh(), ids.dtype()))};
  }

  using LoraLayer::kernel_;        ///< the weight `embeddings`
  using LoraLayer::kernel_scale_;  ///< the weight `embeddings_scale`
};

}  // namespace tessera::detail
