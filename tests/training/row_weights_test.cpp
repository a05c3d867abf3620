#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"

namespace row_weights_test {

using namespace tessera;

TEST_CASE("weights of rows weight rows in fit, also in batches of as many rows as steps") {
  const at::Tensor x = at::arange(42, at::kFloat).mul(1.1).sin().view({7, 3, 2});
  const at::Tensor y = at::arange(21).fmod(2).view({7, 3}).to(at::kLong);
  const at::Tensor w = at::tensor({1.F, 0.F, 4.F, 2.F, 0.5F, 3.F, 1.5F});
  const at::Tensor values = -x.log_softmax(-1).gather(-1, y.unsqueeze(-1)).squeeze(-1);
  const at::Tensor hits = x.argmax(-1).eq(y).to(at::kFloat), column = w.unsqueeze(1);
  std::vector<double> expected;
  for (const at::Tensor& batch : (values * column).split(3)) {
    expected.push_back(batch.mean().item<double>());
  }
  const double accuracy = (hits * column).sum().item<double>() / (w.sum().item<double>() * 3);
  const std::vector<Mesh> meshes = {create_mesh({{"batch", 1}}), create_mesh({{"batch", 3}}),
                                    create_mesh({{"batch", 2}, {"model", 2}})};
  for (const Mesh& mesh : meshes) {
    for (const bool eager : {true, false}) {
      const Sequential model(
          {Input({3, 2}), Dense(2, {.use_bias = false, .kernel_initializer = "identity"})});
      model.compile({.optimizer = SGD(0.0),
                     .loss = SparseCategoricalCrossentropy({.from_logits = true}),
                     .weighted_metrics = {SparseCategoricalAccuracy({.name = "acc"})},
                     .run_eagerly = eager,
                     .layouts = LayoutMap(mesh)});
      const History history =
          model.fit(x, y, {.batch_size = 3, .verbose = 0, .shuffle = false, .sample_weight = w});
      REQUIRE(history.steps.size() == expected.size());
      for (size_t i = 0; i < expected.size(); ++i) CHECK(history.steps[i] == Approx(expected[i]));
      CHECK(history.at("acc")[0] == Approx(accuracy));
    }
  }
}

}  // namespace row_weights_test
