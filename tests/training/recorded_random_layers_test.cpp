#include <tessera/tessera.hpp>

#include "tests/training/recorded.hpp"

namespace recorded_random_layers_test {

using namespace tessera;
using namespace tessera::test;

namespace {

/// Noise of every kind between small_model()'s layers.
Sequential noisy_model() {
  const auto dense = [](int64_t units, const char* activation, int64_t seed, const char* name) {
    return Dense(units, {.activation = activation,
                         .kernel_initializer = GlorotUniform({.seed = seed}),
                         .name = name,
                         .dtype = "float64"});
  };
  return Sequential({dense(14, "selu", 21, "hidden_1"), GaussianNoise(0.1, {.dtype = "float64"}),
                     AlphaDropout(0.2, {.dtype = "float64"}),
                     Reshape({7, 2}, {.dtype = "float64"}),
                     SpatialDropout1D(0.2, {.seed = 5, .dtype = "float64"}),
                     Flatten({.dtype = "float64"}), GaussianDropout(0.1, {.dtype = "float64"}),
                     dense(5, "linear", 23, "logits")});
}

}  // namespace

TEST_CASE("noise of every kind is replayed as it is drawn") {
  for (int64_t devices : {1, 3}) {
    CAPTURE(devices);
    const LayoutMap layouts(create_mesh({{"batch", devices}}, virtual_cpus(devices)));
    const Outcome replayed = trained(noisy_model(), small_compile(layouts));
    CHECK(replayed.records.why == "");
    CHECK(replayed.records.replayed == 31);
    CompileOptions options = small_compile(layouts);
    options.run_eagerly = true;
    check_equal(replayed, trained(noisy_model(), options));
  }
}

}  // namespace recorded_random_layers_test
