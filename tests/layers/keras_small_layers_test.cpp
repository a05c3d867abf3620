#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"

namespace keras_small_layers_test {

using namespace tessera::test;

TEST_CASE("activations as layers, regularizing and normalizing layers are Keras' on every mesh") {
  check_layers(golden_part("keras_small_layers.json", "layers"));
}

}  // namespace keras_small_layers_test
