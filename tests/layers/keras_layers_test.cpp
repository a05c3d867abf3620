#include <ATen/ATen.h>

#include <tessera/framework/data/tensor_dataset.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"

/// Activation, Dense, Dropout, the merges (Add to Subtract, Concatenate, Dot), Flatten, Permute,
/// RepeatVector, Reshape, Normalization and Rescaling against Keras.
namespace keras_layers_test {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("layers match Keras on every mesh") {
  check_layers(golden_part("keras_layers.json", "layers"));
}

TEST_CASE("Normalization adapts as in Keras") {
  for (const Json& golden : golden_part("keras_layers.json", "adapt")) {
    CAPTURE(golden.at("axis").dump());
    const at::Tensor data = input_tensor(golden.at("data"));
    const NormalizationOptions options{.axis = golden.at("axis").get<std::vector<int64_t>>()};
    const Normalization at_once(options);
    at_once.adapt(data);
    const Normalization by_rows(options);
    by_rows.adapt(TensorDataset(data, at::zeros(data.size(0))));
    for (const Normalization& layer : {at_once, by_rows}) {
      CHECK(unlike(layer->weights()[0].value().full(), golden.at("mean")) == "");
      CHECK(unlike(layer->weights()[1].value().full(), golden.at("variance")) == "");
      CHECK(unlike(layer(on_one_device(data)).full(), golden.at("output")) == "");
    }
  }
}

}  // namespace keras_layers_test
