#include <tessera/layers/core/reversible_embedding.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/layers/internal/embedding_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct ReversibleEmbeddingArguments : ReversibleEmbeddingOptions {
  int64_t input_dim = 0, output_dim = 0;
};

template <class Visit>
void fields(ReversibleEmbeddingArguments& a, const Visit& visit) {
  embedding_fields(a, visit);
  visit("tie_weights", a.tie_weights);
  visit("reverse_dtype", a.reverse_dtype);
  visit("logit_soft_cap", a.logit_soft_cap);
}

class ReversibleEmbeddingLayer final
    : public EmbeddingOf<ReversibleEmbeddingLayer, ReversibleEmbeddingArguments> {
 public:
  static constexpr const char* keras_name = "ReversibleEmbedding";
  explicit ReversibleEmbeddingLayer(const ReversibleEmbeddingArguments& arguments);
  DTensor reverse(const DTensor& vectors);

 protected:
  void make_weights(const Shapes& inputs) override;

 private:
  DTensor scores(const DTensor& vectors) const;

  at::ScalarType reverse_dtype_;
  Variable reverse_embeddings_;
};

const RegisteredLayerOf<ReversibleEmbeddingLayer> registered_reversible_embedding({"lora_rank",
                                                                                   "lora_alpha",
                                                                                   "weights"});

ReversibleEmbeddingLayer::ReversibleEmbeddingLayer(const ReversibleEmbeddingArguments& arguments)
    : EmbeddingOf(arguments), reverse_dtype_(dtype_policy().compute) {
  if (arguments.logit_soft_cap && !(*arguments.logit_soft_cap > 0)) {
    throw ConfigError(where(), "logit_soft_cap is positive", str(*arguments.logit_soft_cap),
                      "leave it out for unbounded results");
  }
  if (arguments.reverse_dtype) {
    reverse_dtype_ = tessera::dtype_policy(*arguments.reverse_dtype).compute;
  }
}

void ReversibleEmbeddingLayer::make_weights(const Shapes& inputs) {
  EmbeddingOf::make_weights(inputs);
  const ReversibleEmbeddingArguments& a = arguments_;
  if (a.tie_weights) return;
  reverse_embeddings_ =
      add_weight("reverse_embeddings", {a.output_dim, a.input_dim}, a.embeddings_initializer);
}

DTensor ReversibleEmbeddingLayer::scores(const DTensor& vectors) const {
  const DTensor x = ops::cast(vectors, reverse_dtype_);
  const bool tied = arguments_.tie_weights;
  const DTensor kernel = ops::cast(read(tied ? embeddings_ : reverse_embeddings_), reverse_dtype_);
  const DTensor products = ops::matmul(x, kernel, /*transpose_a=*/false, /*transpose_b=*/tied);
  if (!arguments_.logit_soft_cap) return products;
  const double cap = *arguments_.logit_soft_cap;
  return ops::tanh(products / cap) * cap;
}

DTensor ReversibleEmbeddingLayer::reverse(const DTensor& vectors) {
  if (!built()) build({{-1}});
  if (vectors.rank() < 1 || vectors.shape().back() != arguments_.output_dim) {
    throw ShapeError(where(), str("the last axis has output_dim ", arguments_.output_dim),
                     to_string(vectors.shape()), "pass vectors of the table's extent");
  }
  const CommLabel label(path());
  try {
    return scores(vectors);
  } catch (const Error&) {
    rethrow_at(where());
  }
}

}  // namespace

ReversibleEmbedding::ReversibleEmbedding(int64_t input_dim, int64_t output_dim,
                                         const ReversibleEmbeddingOptions& options)
    : LayerHandle(make_layer<ReversibleEmbeddingLayer>(
          ReversibleEmbeddingArguments{options, input_dim, output_dim})) {}

DTensor ReversibleEmbedding::reverse(const DTensor& vectors) const {
  return static_cast<ReversibleEmbeddingLayer&>(*layer()).reverse(vectors);
}

}  // namespace tessera
