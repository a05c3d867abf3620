#include <tessera/layers/core/reversible_embedding.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/internal/reversed_call.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/linear_cross_entropy.hpp>
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
    : public EmbeddingOf<ReversibleEmbeddingLayer, ReversibleEmbeddingArguments>,
      public Reversible {
 public:
  static constexpr const char* keras_name = "ReversibleEmbedding";
  explicit ReversibleEmbeddingLayer(const ReversibleEmbeddingArguments& arguments);
  DTensor reverse(const DTensor& vectors);
  /// Returns reverse() with the weight reverse_weight(), which another layer has read; logits that
  /// a loss may compute from the operands if `deferred`.
  DTensor scores(const DTensor& vectors, const DTensor& weight, bool deferred) const;
  const Variable& reverse_weight() const {
    return arguments_.tie_weights ? kernel_ : reverse_embeddings_;
  }
  /// Returns a value of reverse_weight() with the adapter's product, if the table has one.
  DTensor adapted_weight(const DTensor& weight) const {
    return arguments_.tie_weights && has_adapter() ? weight + delta() : weight;
  }
  /// Returns the shape of reverse(), of vectors of this shape. Throws ShapeError.
  Shape reverse_shape(const Shape& vectors) const;
  std::shared_ptr<Layer> reversed_call(const std::shared_ptr<Layer>& self) override;
  /// Returns the dtype policy that was given; "" for the global one.
  const std::string& dtype_option() const { return arguments_.dtype; }

 protected:
  void make_weights(const Shapes& inputs) override;

 private:
  at::ScalarType reverse_dtype_;
  Variable reverse_embeddings_;
};

const RegisteredLayerOf<ReversibleEmbeddingLayer> registered_reversible_embedding({"weights"});

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

DTensor ReversibleEmbeddingLayer::scores(const DTensor& vectors, const DTensor& weight,
                                         bool deferred) const {
  const DTensor x = ops::cast(vectors, reverse_dtype_), kernel = ops::cast(weight, reverse_dtype_);
  const bool tied = arguments_.tie_weights;
  if (deferred && !arguments_.logit_soft_cap) {
    return ops::deferred_logits(x, kernel, {}, tied ? ops::ClassAxis::first : ops::ClassAxis::last);
  }
  const DTensor products = ops::matmul(x, kernel, /*transpose_a=*/false, /*transpose_b=*/tied);
  if (!arguments_.logit_soft_cap) return products;
  const double cap = *arguments_.logit_soft_cap;
  return ops::tanh(products / cap) * cap;
}

Shape ReversibleEmbeddingLayer::reverse_shape(const Shape& vectors) const {
  if (vectors.empty() || vectors.back() != arguments_.output_dim) {
    throw ShapeError(where(), str("the last axis has output_dim ", arguments_.output_dim),
                     to_string(vectors), "pass vectors of the table's extent");
  }
  Shape shape = vectors;
  shape.back() = arguments_.input_dim;
  return shape;
}

DTensor ReversibleEmbeddingLayer::reverse(const DTensor& vectors) {
  if (!built()) build({{-1}});
  reverse_shape(vectors.shape());
  const CommLabel label(path());
  try {
    return scores(vectors, adapted_weight(read(reverse_weight())), /*deferred=*/false);
  } catch (const Error&) {
    rethrow_at(where());
  }
}

/// Calls reverse() of an embedding, whose weights it reads but does not own.
class ReversedEmbeddingLayer final : public Layer, public ReversedCall {
 public:
  ReversedEmbeddingLayer(std::shared_ptr<ReversibleEmbeddingLayer> embedding,
                         const LayerOptions& options)
      : Layer(options), embedding_(std::move(embedding)) {}
  std::string class_name() const override { return "ReversedEmbedding"; }
  Shape output_shape(const Shapes& inputs) const override {
    return embedding_->reverse_shape(single_input(inputs));
  }
  bool can_be_replayed() const override { return true; }
  bool supports_masking() const override { return true; }
  const Layer& reversible() const override { return *embedding_; }

 protected:
  void make_weights(const Shapes&) override {
    if (!embedding_->built()) embedding_->build({{-1}});
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    const DTensor weight = embedding_->adapted_weight(read(embedding_->reverse_weight()));
    return embedding_->scores(inputs[0], weight, /*deferred=*/true);
  }

 private:
  std::shared_ptr<ReversibleEmbeddingLayer> embedding_;
};

/// Returns a layer that calls reverse() of a ReversibleEmbeddingLayer.
std::shared_ptr<Layer> reversed_layer(const std::shared_ptr<Layer>& layer,
                                      const std::string& name) {
  const auto embedding = std::static_pointer_cast<ReversibleEmbeddingLayer>(layer);
  return std::make_shared<ReversedEmbeddingLayer>(
      embedding, LayerOptions{.name = name, .dtype = embedding->dtype_option()});
}

std::shared_ptr<Layer> ReversibleEmbeddingLayer::reversed_call(const std::shared_ptr<Layer>& self) {
  return reversed_layer(self, "");
}

}  // namespace

ReversibleEmbedding::ReversibleEmbedding(int64_t input_dim, int64_t output_dim,
                                         const ReversibleEmbeddingOptions& options)
    : LayerHandle(make_layer<ReversibleEmbeddingLayer>(
          ReversibleEmbeddingArguments{options, input_dim, output_dim})) {}

DTensor ReversibleEmbedding::reverse(const DTensor& vectors) const {
  return static_cast<ReversibleEmbeddingLayer&>(*layer()).reverse(vectors);
}

LayerHandle ReversibleEmbedding::reversed(const std::string& name) const {
  return LayerHandle(reversed_layer(layer(), name));
}

}  // namespace tessera
