#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"

/// Activation, ELU, LeakyReLU, PReLU, ReLU, Softmax, Identity, ActivityRegularization,
/// UnitNormalization, AlphaDropout, GaussianDropout, GaussianNoise and SpatialDropout1D, 2D, 3D
/// against Keras.
namespace keras_small_layers_test {

using namespace tessera::test;

TEST_CASE("activation, regularization and normalization layers match Keras on every mesh") {
  check_layers(golden_part("keras_small_layers.json", "layers"));
}

}  // namespace keras_small_layers_test
