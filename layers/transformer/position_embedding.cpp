#include <tessera/layers/transformer/position_embedding.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/key_value_cache.hpp>
#include <tessera/framework/ops/constants.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/layers/internal/layer_of.hpp>
#include <tessera/layers/internal/packed_documents.hpp>

namespace tessera {

using namespace detail;

namespace {

struct PositionEmbeddingArguments : PositionEmbeddingOptions {
  int64_t sequence_length = 0;
};

template <class Visit>
void fields(PositionEmbeddingArguments& a, const Visit& visit) {
  ExtentOption sequence_length{a.sequence_length};
  CallOption add{a.add};
  visit("sequence_length", sequence_length);
  visit("initializer", a.initializer);
  visit("add", add);
}

class PositionEmbeddingLayer final
    : public LayerOf<PositionEmbeddingLayer, PositionEmbeddingArguments> {
 public:
  static constexpr const char* keras_name = "PositionEmbedding";
  explicit PositionEmbeddingLayer(const PositionEmbeddingArguments& arguments);
  Shape output_shape(const Shapes& inputs) const override;
  bool supports_masking() const override { return arguments_.add; }

 protected:
  void make_weights(const Shapes& inputs) override;
  DTensor call(const Inputs& inputs, const CallContext& context) override;

 private:
  DTensor step_rows(const DTensor& x, const CallContext& context) const;
  DTensor document_rows(const Inputs& inputs, const CallContext& context) const;
  void check_steps(int64_t steps) const;

  Variable embeddings_;
};

const RegisteredLayerOf<PositionEmbeddingLayer> registered_position_embedding;

PositionEmbeddingLayer::PositionEmbeddingLayer(const PositionEmbeddingArguments& arguments)
    : LayerOf(arguments) {
  if (arguments.sequence_length >= 1) return;
  throw ConfigError(where(), "sequence_length is at least 1", str(arguments.sequence_length),
                    "give the maximum number of steps");
}

Shape PositionEmbeddingLayer::output_shape(const Shapes& inputs) const {
  const Shape& input = inputs.size() == 2 ? inputs[0] : single_input(inputs);
  if (input.size() < 2 || input.back() < 1) {
    throw ShapeError(where(), "the input is (batch, steps, features), of known features",
                     to_string(input), "embed token ids first");
  }
  if (built() && input.back() != embeddings_.shape()[1]) {
    throw ShapeError(where(), str(embeddings_.shape()[1], " features, as when built"),
                     to_string(input), "pass inputs of that size");
  }
  return input;
}

void PositionEmbeddingLayer::make_weights(const Shapes& inputs) {
  embeddings_ = add_weight("embeddings", {arguments_.sequence_length, inputs[0].back()},
                           arguments_.initializer);
}

DTensor PositionEmbeddingLayer::call(const Inputs& inputs, const CallContext& context) {
  const DTensor& x = inputs[0];
  const DTensor rows = inputs.size() == 2 ? document_rows(inputs, context) : step_rows(x, context);
  return (arguments_.add ? x : ops::zeros_like(x)) + rows;
}

/// Returns the rows of the steps of x.
DTensor PositionEmbeddingLayer::step_rows(const DTensor& x, const CallContext& context) const {
  const int64_t steps = x.size(x.rank() - 2);
  CachedSteps cached;
  if (context.cache && x.rank() == 3) cached = context.cache->next_steps(*this, x);
  if (cached.first.defined()) {
    cached.check_end([this](int64_t end) { check_steps(end); });
    return ops::gather(read(embeddings_), cached.positions);
  }
  check_steps(steps);
  const DTensor all = read(embeddings_);
  return steps == arguments_.sequence_length ? all : ops::slice(all, 0, 0, steps);
}

/// Returns the rows of the positions in documents.
DTensor PositionEmbeddingLayer::document_rows(const Inputs& inputs,
                                              const CallContext& context) const {
  const DTensor& x = inputs[0];
  if (context.cache || x.rank() != 3) {
    throw ConfigError(where(),
                      "with document ids, the input is (batch, steps, features), and there is no "
                      "key-value cache",
                      context.cache ? "a cache" : to_string(x.shape()), "leave the ids out");
  }
  check_documents(where(), inputs[1], x.size(0), x.size(1));
  check_steps(x.size(1));
  return ops::embedding(read(embeddings_), document_positions(inputs[1]));
}

void PositionEmbeddingLayer::check_steps(int64_t steps) const {
  const int64_t length = arguments_.sequence_length;
  if (steps <= length) return;
  throw ShapeError(where(), str("a sequence has at most sequence_length = ", length, " steps"),
                   str(steps), "shorten it, or make the layer longer");
}

}  // namespace

PositionEmbedding::PositionEmbedding(int64_t sequence_length,
                                     const PositionEmbeddingOptions& options)
    : LayerHandle(make_layer<PositionEmbeddingLayer>(
          PositionEmbeddingArguments{options, sequence_length})) {}

}  // namespace tessera
