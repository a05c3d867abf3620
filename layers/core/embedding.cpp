#include <tessera/layers/core/embedding.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/internal/layer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(EmbeddingOptions& o, const Visit& visit) {
  std::nullptr_t none = nullptr;
  visit("embeddings_initializer", o.embeddings_initializer);
  visit("embeddings_regularizer", o.embeddings_regularizer);
  visit("activity_regularizer", none);
  visit("embeddings_constraint", o.embeddings_constraint);
  visit("mask_zero", o.mask_zero);
}

namespace {

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options);
  std::string class_name() const override { return "Embedding"; }
  Json config() const override {
    return layer_config(*this, {{"input_dim", input_dim_}, {"output_dim", output_dim_}}, options_);
  }
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return options_.mask_zero; }
  bool can_be_replayed() const override { return true; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;
  std::vector<DTensor> masks(const Inputs& inputs, size_t outputs) override;

 private:
  int64_t input_dim_, output_dim_;
  EmbeddingOptions options_;
  Variable embeddings_;
};

const RegisteredLayer registered_embedding("Embedding", [](JsonObject& config) {
  const auto options = layer_options_from<EmbeddingOptions>(config);
  take_nulls(config, {"lora_rank", "lora_alpha", "quantization_config", "weights"});
  const int64_t input_dim = take_extent(config, "input_dim");
  return Embedding(input_dim, take_extent(config, "output_dim"), options);
});

EmbeddingLayer::EmbeddingLayer(int64_t input_dim, int64_t output_dim,
                               const EmbeddingOptions& options)
    : Layer(common_options(options)),
      input_dim_(input_dim),
      output_dim_(output_dim),
      options_(options) {
  if (input_dim < 1 || output_dim < 1) {
    throw ConfigError("Embedding " + options.name, "input_dim and output_dim are at least 1",
                      str(input_dim, " and ", output_dim),
                      "give the number of rows and their extent");
  }
  if (!options.embeddings_layout.empty()) {
    set_weight_layout("embeddings", options.embeddings_layout);
  }
}

Shape EmbeddingLayer::output_shape(const Shapes& inputs) const {
  Shape shape = single_input(inputs);
  shape.push_back(output_dim_);
  return shape;
}

void EmbeddingLayer::make_weights(const Shapes&) {
  embeddings_ = add_weight("embeddings", {input_dim_, output_dim_}, options_.embeddings_initializer,
                           {.regularizer = options_.embeddings_regularizer,
                            .constraint = options_.embeddings_constraint});
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
    : LayerHandle(std::make_shared<EmbeddingLayer>(input_dim, output_dim, options)) {}

}  // namespace tessera
