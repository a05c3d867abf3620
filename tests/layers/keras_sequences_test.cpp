#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"

/// LayerNormalization, GroupNormalization, RMSNormalization, Embedding, SimpleRNN, LSTM, GRU,
/// Bidirectional, TimeDistributed, EinsumDense, MultiHeadAttention, Attention and AdditiveAttention
/// against Keras, and the layers that pass masks on: these, Masking, BatchNormalization and the
/// merges.
namespace keras_sequences_test {

using namespace tessera;
using namespace tessera::test;

namespace {

const Json& cases(const std::string& part) { return golden_part("keras_sequences.json", part); }

}  // namespace

TEST_CASE("layer, group and RMS normalization match Keras on any mesh") {
  check_layers(cases("norms"));
}

TEST_CASE("Embedding matches Keras on any mesh") { check_layers(cases("embeddings")); }

TEST_CASE("EinsumDense matches Keras on any mesh") { check_layers(cases("EinsumDense")); }

TEST_CASE("masks pass through layers as in Keras, on any mesh") { check_layers(cases("masked")); }

}  // namespace keras_sequences_test
