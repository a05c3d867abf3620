#include <tessera/layers/normalization/batch_normalization.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace masked_batch_normalization_test {

using namespace tessera;
using namespace tessera::test;

namespace {

/// Checks one call in training, its gradients given the golden's upstream gradient, and the
/// statistics after it.
void check_training(const Json& golden, const Layout& layout) {
  const at::Tensor full = input_tensor(golden.at("inputs")[0]);
  const at::Tensor counts = input_tensor(golden.at("masks")[0]);
  std::vector<std::vector<int>> axes;
  for (int64_t a = 0; a + 1 < full.dim(); ++a) axes.push_back(layout.axis(a));
  const DTensor x = pack(full, layout);
  const DTensor mask = pack(counts, Layout::from_axes(layout.mesh(), axes));
  const LayerHandle layer = layer_of(golden, {x});
  std::vector<DTensor> sources = {x};
  GradientTape tape;
  tape.watch(x);
  for (const Variable& weight : layer->trainable_weights()) sources.push_back(weight.value());
  const DTensor y = layer(x.with_mask(mask), {.training = true});
  CHECK(unlike(y.full(), golden.at("output")) == "");
  const DTensor factors =
      pack(upstream(at::empty(y.shape())), Layout::replicated(y.mesh(), y.rank()));
  const std::vector<DTensor> gradients = tape.gradient(ops::sum(y * factors), sources);
  for (size_t g = 0; g < gradients.size(); ++g) {
    CAPTURE(g);
    CHECK(unlike(gradients[g].full(), golden.at("gradients")[g]) == "");
  }
  const std::vector<Variable> weights = layer->weights();
  const Json& moved = golden.at("moved");
  for (size_t m = 0; m < moved.size(); ++m) {
    const Variable& moving = weights[weights.size() - moved.size() + m];
    CAPTURE(moving.path());
    CHECK(unlike(moving.value().full(), moved[m]) == "");
  }
}

}  // namespace

TEST_CASE("BatchNormalization learns from unmasked elements as in Keras, on any mesh") {
  for (const Json& golden : golden_part("keras_sequences.json", "training")) {
    CAPTURE(golden.at("layer").dump());
    const auto rank = static_cast<int64_t>(golden.at("inputs")[0].at("shape").size());
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2}, {2, 2}}) {
      for (const Layout& layout : all_layouts(virtual_mesh(sizes), rank)) {
        CAPTURE(layout.describe());
        check_training(golden, layout);
      }
    }
  }
}

}  // namespace masked_batch_normalization_test
