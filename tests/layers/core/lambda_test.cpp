#include <tessera/layers/core/lambda.hpp>

#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/files.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace lambda_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::error_line;

namespace {

DTensor squared_sum(const DTensor& x) { return ops::sum(ops::square(x), {-1}); }

TensorDataset data() {
  return TensorDataset(Examples{.x = {test::random_values({{12, 3}}, 1).to(at::kFloat)},
                                .y = {test::random_values({{12, 1}}, 2).to(at::kFloat)}});
}

/// Trains a model with a Lambda; returns its weights and how many steps were replayed.
std::pair<std::vector<at::Tensor>, int64_t> trained(const LayerHandle& middle) {
  const Sequential model({Input({3}), Dense(4, {.name = "first"}), middle, Dense(1)});
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  model.fit(data(), {.batch_size = 4, .epochs = 3, .verbose = 0, .shuffle = false});
  return {model.get_weights(), model.step_records().replayed};
}

}  // namespace

TEST_CASE("Lambda applies its function on any mesh") {
  const at::Tensor x = test::random_values({{5, 3, 4}}, 1).to(at::kFloat);
  const at::Tensor expected = x.square().sum(-1);
  const LayerHandle layer = Lambda(squared_sum);
  CHECK(layer->output_shape({{-1, 3, 4}}) == Shape{-1, 3});
  for (const int64_t devices : {1, 2, 3}) {
    const Mesh mesh = create_mesh({{"batch", devices}}, virtual_cpus(devices));
    const DTensor in = pack(x, Layout::batch_sharded(mesh, "batch", 3));
    CHECK(difference(layer(in).full(), expected, 1e-6, 1e-6) == "");
  }
  CHECK(layer->weights().empty());
}

TEST_CASE("Lambda checks the output's shape if it was given one") {
  const LayerHandle layer = Lambda(squared_sum, {.output_shape = Shape{3}});
  CHECK(layer->output_shape({{-1, 3, 4}}) == Shape{-1, 3});
  CHECK(layer(ones({2, 3, 4})).shape() == Shape{2, 3});
  const LayerHandle wrong = Lambda(squared_sum, {.output_shape = Shape{4}, .name = "l"});
  CHECK_THAT(error_line([&] {
               wrong(ones({2, 3, 4}));
             }),
             Contains("[Lambda l]") && Contains("(2, 4)") && Contains("(2, 3)"));
}

TEST_CASE("a model with a Lambda trains, and replays its steps only if told that it may") {
  const auto relu = [](const DTensor& x) { return ops::relu(x) * 2; };
  const auto [weights, replayed] = trained(Lambda(relu));
  CHECK(replayed == 0);
  const auto [same, more_replayed] = trained(Lambda(relu, {.can_be_replayed = true}));
  CHECK(more_replayed > 0);
  REQUIRE(weights.size() == same.size());
  for (size_t w = 0; w < weights.size(); ++w) CHECK(difference(same[w], weights[w]) == "");
}

TEST_CASE("a model with a Lambda cannot be saved or cloned, but its weights can") {
  const test::TempFolder folder;
  const Sequential inner({Dense(2), Lambda(squared_sum, {.name = "norm"})});
  const Sequential model({Input({4, 3}), TimeDistributed(inner), Flatten(), Dense(1)});
  const Sequential plain({Input({3}), Dense(2), Lambda(squared_sum, {.name = "norm"})});
  // A matcher refers to its parts.
  const auto layer = Contains("[Lambda"), name = Contains("norm"),
             fix = Contains("register_layer()");
  const auto refused = layer && name && fix;
  CHECK_THAT(error_line([&] { plain.to_json(); }), refused);
  CHECK_THAT(error_line([&] { plain.save(folder / "model.keras"); }), refused);
  CHECK_THAT(error_line([&] { clone_model(plain); }), refused);
  CHECK_THAT(error_line([&] { model.to_json(); }), refused);
  plain.save_weights(folder / "model.weights.h5");
  CHECK(exists(folder / "model.weights.h5"));
}

TEST_CASE("Lambda refuses an empty function") {
  CHECK_THAT(error_line([] { Lambda({}, {.name = "l"}); }), Contains("[Lambda l]"));
}

}  // namespace lambda_test
