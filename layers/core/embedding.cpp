#include <tessera/layers/core/embedding.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/layer_registry.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

EmbeddingLayer::EmbeddingLayer(int64_t input_dim, int64_t output_dim,
                               const EmbeddingOptions& options)
    : Layer({options.name, options.dtype, options.trainable}), input_dim_(input_dim),
      output_dim_(output_dim), options_(options) {
  if (input_dim < 1 || output_dim < 1) {
    throw ConfigError("Embedding " + options.name, "input_dim and output_dim are at least 1",
                      str(input_dim, " and ", output_dim),
                      "give the number of rows and their length");
  }
  if (!options.embeddings_layout.empty()) {
    set_weight_layout("embeddings", options.embeddings_layout);
  }
}

Json EmbeddingLayer::config() const {
  Json json = Layer::config();
  json["input_dim"] = input_dim_;
  json["output_dim"] = output_dim_;
  json["embeddings_initializer"] = serialized(options_.embeddings_initializer);
  json["embeddings_regularizer"] = serialized(options_.embeddings_regularizer);
  json["activity_regularizer"] = nullptr;
  json["embeddings_constraint"] = serialized(options_.embeddings_constraint);
  json["mask_zero"] = options_.mask_zero;
  return json;
}

Shape EmbeddingLayer::output_shape(const Shapes& inputs) const {
  Shape shape = single_input(inputs);
  shape.push_back(output_dim_);
  return shape;
}

void EmbeddingLayer::make_weights(const Shapes&) {
  embeddings_ = add_weight("embeddings", {input_dim_, output_dim_},
                           options_.embeddings_initializer,
                           {.regularizer = options_.embeddings_regularizer,
                            .constraint = options_.embeddings_constraint});
}

DTensor EmbeddingLayer::call(const Inputs& inputs, const CallContext&) {
  const DTensor& ids = inputs[0];
  const bool whole = at::isIntegralType(ids.dtype(), /*includeBool=*/false);
  return ops::embedding(read(embeddings_), whole ? ids : ops::cast(ids, at::kInt));
}

std::vector<DTensor> EmbeddingLayer::masks(const Inputs& inputs, size_t) {
  const DTensor& ids = inputs[0];
  return {ops::not_equal(ids, scalar(0, ids.mesh(), ids.dtype()))};
}

Embedding Embedding::from_config(JsonObject& config) {
  const LayerOptions base = take_layer_options(config);
  EmbeddingOptions options;
  options.embeddings_initializer =
      config.take_or("embeddings_initializer", options.embeddings_initializer);
  options.embeddings_regularizer =
      config.take_or("embeddings_regularizer", options.embeddings_regularizer);
  options.embeddings_constraint =
      config.take_or("embeddings_constraint", options.embeddings_constraint);
  options.mask_zero = config.take_or("mask_zero", options.mask_zero);
  options.name = base.name;
  options.dtype = base.dtype;
  options.trainable = base.trainable;
  take_nulls(config, {"activity_regularizer", "lora_rank", "lora_alpha", "quantization_config",
                      "weights"});
  const int64_t input_dim = take_extent(config, "input_dim");
  return Embedding(input_dim, take_extent(config, "output_dim"), options);
}

}  // namespace tessera
