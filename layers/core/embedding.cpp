#include <tessera/layers/core/embedding.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct EmbeddingArguments : EmbeddingOptions {
  int64_t input_dim = 0, output_dim = 0;
};

template <class Visit>
void fields(EmbeddingArguments& a, const Visit& visit) {
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

class EmbeddingLayer final : public LayerOf<EmbeddingLayer, EmbeddingArguments> {
 public:
  static constexpr const char* keras_name = "Embedding";
  explicit EmbeddingLayer(const EmbeddingArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return arguments_.mask_zero; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  Variable embeddings_;
};

const RegisteredLayerOf<EmbeddingLayer> registered_embedding({"lora_rank", "lora_alpha",
                                                              "quantization_config", "weights"});

EmbeddingLayer::EmbeddingLayer(const EmbeddingArguments& arguments) : LayerOf(arguments) {
  if (arguments.input_dim < 1 || arguments.output_dim < 1) {
    throw ConfigError(where(), "input_dim and output_dim are at least 1",
                      str(arguments.input_dim, " and ", arguments.output_dim),
                      "give the number of rows and their extent");
  }
  if (!arguments.embeddings_layout.empty()) {
    set_weight_layout("embeddings", arguments.embeddings_layout);
  }
}

Shape EmbeddingLayer::output_shape(const Shapes& inputs) const {
  Shape shape = single_input(inputs);
  shape.push_back(arguments_.output_dim);
  return shape;
}

void EmbeddingLayer::make_weights(const Shapes&) {
  embeddings_ = add_weight("embeddings", {arguments_.input_dim, arguments_.output_dim},
                           arguments_.embeddings_initializer,
                           {.regularizer = arguments_.embeddings_regularizer,
                            .constraint = arguments_.embeddings_constraint});
}

DTensor EmbeddingLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& ids = inputs[0];
  const bool integral = at::isIntegralType(ids.dtype(), /*includeBool=*/false);
  return ops::embedding(read(embeddings_), integral ? ids : ops::cast(ids, at::kInt));
}

std::vector<DTensor> EmbeddingLayer::masks(const Inputs& inputs, size_t) {
  const DTensor& ids = inputs[0];
  return {ops::not_equal(ids, scalar(0, ids.mesh(), ids.dtype()))};
}

}  // namespace

Embedding::Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options)
    : LayerHandle(make_layer<EmbeddingLayer>(EmbeddingArguments{options, input_dim, output_dim})) {}

}  // namespace tessera
