#include <tessera/layers/core/embedding.hpp>

#include <tessera/layers/internal/embedding_of.hpp>

namespace tessera {

using namespace detail;

namespace {

struct EmbeddingArguments : EmbeddingOptions {
  int64_t input_dim = 0, output_dim = 0;
};

template <class Visit>
void fields(EmbeddingArguments& a, const Visit& visit) {
  embedding_fields(a, visit);
}

class EmbeddingLayer final : public EmbeddingOf<EmbeddingLayer, EmbeddingArguments> {
 public:
  static constexpr const char* keras_name = "Embedding";
  using EmbeddingOf::EmbeddingOf;
  bool can_be_quantized() const override { return true; }
};

const RegisteredLayerOf<EmbeddingLayer> registered_embedding({"weights"});

}  // namespace

Embedding::Embedding(int64_t input_dim, int64_t output_dim, const EmbeddingOptions& options)
    : LayerHandle(make_layer<EmbeddingLayer>(EmbeddingArguments{options, input_dim, output_dim})) {}

}  // namespace tessera
