#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/layers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/warnings.hpp"

namespace masks_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::Warnings;

namespace {

DTensor masked(const Shape& shape, const Shape& mask) {
  return ones(shape).with_mask(filled(mask, 1, at::kBool));
}

}  // namespace

TEST_CASE("a layer that drops a mask warns once") {
  const LayerHandle layer = Flatten({.name = "flat"});
  const Warnings warnings;
  CHECK_FALSE(layer(masked({3, 4, 2}, {3, 4})).mask().defined());
  layer(masked({3, 4, 2}, {3, 4}));
  Dense(2)(masked({3, 4, 2}, {3, 4}));
  Flatten()(ones({3, 4, 2}));
  CHECK(warnings.lines() == 1);
  CHECK_THAT(warnings.text(), Contains("Flatten flat") && Contains("mask"));
}

TEST_CASE("layers that do not support masks drop them even when they change nothing") {
  const Warnings warnings;
  const LayerHandle layers[] = {UpSampling1D(1), ZeroPadding1D(0), Cropping1D(0), Reshape({4, 2})};
  for (const LayerHandle& layer : layers) {
    CAPTURE(layer->class_name());
    CHECK_FALSE(layer(masked({3, 4, 2}, {3, 4})).mask().defined());
  }
  CHECK(warnings.lines() == 4);
  CHECK(Identity()(masked({3, 4, 2}, {3, 4})).mask().defined());
}

TEST_CASE("masks that do not fit are errors of one line") {
  const auto error_of = [](const LayerHandle& layer, const Inputs& inputs) -> std::string {
    try {
      layer(inputs);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(error_of(LSTM(2, {.name = "rnn"}), {masked({3, 4, 2}, {3, 4, 2})}),
             Contains("[LSTM rnn]") && Contains("(3, 4, 2)"));
  CHECK_THAT(error_of(LSTM(2, {.name = "rnn"}), {masked({3, 4, 2}, {3, 2})}),
             Contains("batch and time, (3, 4). Received: (3, 2)"));
  CHECK_THAT(error_of(TimeDistributed(Dense(2), {.name = "each"}), {masked({3, 4, 2}, {3, 2})}),
             Contains("[TimeDistributed each]") && Contains("4 steps") && Contains("(3, 2)"));
}

}  // namespace masks_test
