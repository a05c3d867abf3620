#include <tessera/layers/convolutional/conv.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/ops/conv.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>
#include <tessera/layers/layers.hpp>
#include <tessera/optimizers/optimizers.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace conv_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

namespace {

DTensor blank(const Shape& shape) {
  return pack(at::zeros(shape),
              Layout::replicated(default_mesh(), static_cast<int64_t>(shape.size())));
}

}  // namespace

TEST_CASE("convolutions name the layer, argument and value that they refuse") {
  const auto made = [](const auto& make) { return error_line([&] { make(); }); };
  CHECK(made([] { Conv2D(0, 3, {.name = "first"}); }) ==
        "[Conv2D first] filters is at least 1. Received: 0. To fix: give an integer from 1 on.");
  CHECK_THAT(made([] {
               Conv2D(4, {3, 3, 3});
             }),
             Contains("kernel_size is one integer of at least 1, or 2 of them. "
                      "Received: (3, 3, 3)"));
  CHECK_THAT(made([] { Conv2D(4, 3, {.strides = 0}); }), Contains("strides is one integer"));
  CHECK_THAT(made([] { Conv1D(4, 3, {.dilation_rate = -2}); }),
             Contains("dilation_rate is one integer of at least 1"));
  CHECK_THAT(made([] { Conv2D(4, 3, {.padding = "cuasal"}); }),
             Contains("padding is one of \"valid\", \"same\". Received: \"cuasal\""));
  CHECK_THAT(made([] { Conv2D(4, 3, {.data_format = "nchw"}); }), Contains("data_format"));
  CHECK_THAT(made([] { Conv2D(4, 3, {.groups = 3}); }),
             Contains("filters is a multiple of groups"));
  CHECK_THAT(made([] { Conv2D(4, 3, {.activation = "rleu"}); }), Contains("write \"relu\""));
}

TEST_CASE("kernels, their gradients and slots lie in memory as convolutions read them") {
  const auto lies_so = [](const DTensor& value) {
    return tessera::detail::is_in_order(value.blocks()[0], ops::conv_kernel_order(2));
  };
  Sequential model({Input({8, 8, 3}), Conv2D(6, 3), Conv2D(8, 3, {.groups = 2}),
                    Conv2DTranspose(4, 3), GlobalAveragePooling2D()});
  const OptimizerHandle adam = Adam(1e-3);
  model.compile({.optimizer = adam, .loss = "mse"});
  const at::Tensor x = at::rand({2, 8, 8, 3}), y = at::rand({2, 4});
  model.train_on_batch(x, y);
  for (const Variable& weight : model.trainable_weights()) {
    if (weight.shape().size() != 4) continue;
    INFO(weight.path());
    CHECK(lies_so(weight.value()));
    size_t slots = 0;
    for (const Variable& slot : adam->variables_of(weight)) {
      CHECK(lies_so(slot.value()));
      ++slots;
    }
    CHECK(slots == 2);
    GradientTape tape;
    const DTensor out = model(pack(x));
    CHECK(lies_so(tape.gradient(out, weight)));
  }
}

TEST_CASE("convolutions name the layer and shape of an invalid input") {
  const auto call = [](const LayerHandle& layer, const Shape& shape) {
    return error_line([&] { layer(blank(shape)); });
  };
  CHECK_THAT(call(Conv2D(4, 5, {.name = "c"}), {2, 4, 6, 3}),
             Contains("a window of 5 fits into spatial axis 0. Received: 4 elements in "
                      "(2, 4, 6, 3)"));
  CHECK_THAT(call(Conv2D(4, 5, {.name = "c"}), {2, 4, 6}),
             Contains("[Conv2D c] the input is (batch, height, width, channels). "
                      "Received: (2, 4, 6)"));
  CHECK_THAT(call(Conv1D(4, 2, {.groups = 2}), {1, 4, 3}), Contains("multiple of groups 2"));
  const Conv2D built(4, 3, {.name = "c"});
  built(blank({1, 5, 5, 2}));
  CHECK_THAT(call(built, {1, 5, 5, 3}), Contains("has 2 channels, as when built"));
}

}  // namespace conv_test
