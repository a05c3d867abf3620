#pragma once

#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>
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
}

/// Base of Embedding and ReversibleEmbedding: maps ids to rows of the weight `embeddings`.
template <class Self, class LayerArguments>
class EmbeddingOf : public LayerOf<Self, LayerArguments> {
 public:
  /// Throws ConfigError for a dimension < 1.
  explicit EmbeddingOf(const LayerArguments& arguments) : LayerOf<Self, LayerArguments>(arguments) {
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

 protected:
  void make_weights(const Shapes&) override {
    const LayerArguments& a = this->arguments_;
    embeddings_ = this->add_weight(
        "embeddings", {a.input_dim, a.output_dim}, a.embeddings_initializer,
        {.regularizer = a.embeddings_regularizer, .constraint = a.embeddings_constraint});
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    const DTensor& ids = inputs[0];
    const bool integral = at::isIntegralType(ids.dtype(), /*includeBool=*/false);
    return ops::embedding(this->read(embeddings_), integral ? ids : ops::cast(ids, at::kInt));
  }
  std::vector<DTensor> masks(const Inputs& inputs, size_t) override {
    const DTensor& ids = inputs[0];
    return {ops::not_equal(ids, scalar(0, ids.mesh(), ids.dtype()))};
  }

  Variable embeddings_;
};

}  // namespace tessera::detail
