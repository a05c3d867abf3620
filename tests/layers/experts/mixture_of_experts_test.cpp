#include <tessera/layers/experts/mixture_of_experts.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/layer_metrics.hpp>
#include <tessera/framework/nn/layer_registry.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/dtype_scope.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/layer_check.hpp"
#include "tests/support/random_layer_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace mixture_of_experts_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::DTypeScope;
using test::error_line;
using test::training_step;

namespace {

at::Tensor values(const Shape& shape, uint64_t seed) {
  return test::random_values({shape, at::kDouble}, seed);
}

DTensor on_one_device(const at::Tensor& x) {
  return pack(x, Layout::replicated(default_mesh(), x.dim()));
}

/// Returns the totals of a layer's metric by its name.
std::vector<double> totals_of(const LayerHandle& layer, const std::string& name) {
  for (const auto& [path, metric] : layer_metrics(*layer.layer())) {
    if (path == layer->path() + "/" + name) return Metric::totals({metric.get()})[0];
  }
  FAIL("no metric " << name);
  return {};
}

}  // namespace

TEST_CASE("MixtureOfExperts under every layout") {
  // With two experts that both process each token, rounding cannot change the routing.
  for (const char* dispatch : {"einsum", "sort", "dropless"}) {
    for (const bool legacy : {false, true}) {
      CAPTURE(dispatch, legacy);
      const Json glorot = {{"class_name", "GlorotUniform"}, {"config", {{"seed", nullptr}}}};
      const Json config = {
          {"num_experts", 2},
          {"hidden_dim", 3},
          {"top_k", 2},
          {"capacity_factor", 2.0},
          {"eval_capacity_factor", 2.0},
          {"aux_loss", 0.0},
          {"z_loss", 0.1},
          {"activation", "tanh"},
          {"second_expert_policy", "all"},
          {"second_expert_threshold", 0.2},
          {"legacy_mtf_behavior", legacy},
          {"dispatch", dispatch},
          {"use_bias", true},
          {"router_initializer", glorot},
          {"kernel_initializer", glorot},
          {"bias_initializer", {{"class_name", "Zeros"}, {"config", Json::object()}}},
          {"kernel_regularizer", nullptr},
          {"bias_regularizer", nullptr},
          {"activity_regularizer", nullptr},
          {"kernel_constraint", nullptr},
          {"bias_constraint", nullptr},
          {"seed", nullptr}};
      const auto make = [&] {
        return MixtureOfExperts({.num_experts = 2,
                                 .hidden_dim = 3,
                                 .aux_loss = 0,
                                 .z_loss = 0.1,
                                 .activation = "tanh",
                                 .legacy_mtf_behavior = legacy,
                                 .dispatch = dispatch});
      };
      test::run_layer_test({.make = make,
                            .input = {{3, 5, 4}},
                            .output = {3, 5, 4},
                            .weights = {{"router/kernel", {4, 2}},
                                        {"expert_1/kernel", {2, 4, 3}},
                                        {"expert_1/bias", {2, 3}},
                                        {"expert_2/kernel", {2, 3, 4}},
                                        {"expert_2/bias", {2, 4}}},
                            .config = config});
    }
  }
}

TEST_CASE("MixtureOfExperts processes each token with its experts alone") {
  const DTypeScope doubles("float64");
  const at::Tensor x = values({2, 7, 5}, 1);
  for (const int64_t top_k : {1, 2, 3, 4}) {
    for (const char* dispatch : {"einsum", "sort", "dropless"}) {
      CAPTURE(top_k, dispatch);
      const LayerHandle layer = MixtureOfExperts({.num_experts = 4,
                                                  .hidden_dim = 6,
                                                  .top_k = top_k,
                                                  .capacity_factor = 4,
                                                  .dispatch = dispatch,
                                                  .use_bias = false,
                                                  .name = "moe"});
      const at::Tensor y = layer(on_one_device(x), training_step(0)).full();
      const auto weight = [&](size_t i) { return layer->weights()[i].value().full(); };
      const at::Tensor gates = at::softmax(at::matmul(x, weight(0)), -1);
      const auto [best, experts] = at::topk(gates, top_k);
      const at::Tensor shares = top_k == 1 ? best : best / (best.sum(-1, true) + 1e-9);
      at::Tensor expected = at::zeros_like(x);
      for (int64_t g = 0; g < 2; ++g) {
        for (int64_t s = 0; s < 7; ++s) {
          for (int64_t k = 0; k < top_k; ++k) {
            const auto e = experts[g][s][k].item<int64_t>();
            const at::Tensor hidden = at::relu(at::matmul(x[g][s], weight(1)[e]));
            expected[g][s] += shares[g][s][k] * at::matmul(hidden, weight(2)[e]);
          }
        }
      }
      CHECK(difference(y, expected, 1e-12, 1e-13) == "");
      const auto choices = static_cast<double>(14 * top_k);
      CHECK(totals_of(layer, "dropped") == std::vector<double>{choices, choices});
    }
  }
}

TEST_CASE("dropless experts drop nothing where all tokens choose one expert") {
  const DTypeScope doubles("float64");
  // The first expert's logit is by far the largest of every token.
  const at::Tensor x = values({2, 9, 5}, 1).abs() + 0.1;
  const auto made = [&](const char* dispatch) {
    const LayerHandle layer = MixtureOfExperts({.num_experts = 4,
                                                .hidden_dim = 6,
                                                .top_k = 1,
                                                .capacity_factor = 1,
                                                .dispatch = dispatch,
                                                .name = "moe"});
    layer->build({{-1, 9, 5}});
    at::Tensor router = at::zeros({5, 4}, at::kDouble);
    router.select(1, 0).fill_(5);
    Variable weight = layer->weights()[0];
    weight.assign(on_one_device(router));
    return layer;
  };
  const LayerHandle dropless = made("dropless"), sort = made("sort");
  const at::Tensor y = dropless(on_one_device(x), training_step(0)).full();
  sort(on_one_device(x), training_step(0));
  CHECK(totals_of(dropless, "dropped") == std::vector<double>{18, 18});
  CHECK(totals_of(sort, "dropped") == std::vector<double>{18, 4});
  CHECK(y.ne(0).any(-1).all().item<bool>());
}

TEST_CASE("MixtureOfExperts skips masked tokens") {
  const DTypeScope doubles("float64");
  for (const char* dispatch : {"einsum", "sort", "dropless"}) {
    CAPTURE(dispatch);
    const LayerHandle layer = MixtureOfExperts({.num_experts = 3,
                                                .hidden_dim = 4,
                                                .capacity_factor = 1,
                                                .z_loss = 0.1,
                                                .legacy_mtf_behavior = false,
                                                .dispatch = dispatch,
                                                .name = "moe"});
    const at::Tensor x = values({1, 9, 5}, 4);
    const at::Tensor valid = at::arange(9, at::kLong).lt(6).unsqueeze(0);
    const DTensor masked = on_one_device(x).with_mask(on_one_device(valid));
    const DTensor y = layer(masked, training_step(0));
    CHECK(at::equal(y.mask().full(), valid));
    CHECK(y.full().narrow(1, 6, 3).eq(0).all().item<bool>());
    CHECK(totals_of(layer, "dropped")[0] == 12);
    const std::vector<DTensor> losses = layer->losses();
    REQUIRE(losses.size() == 2);
    // The capacity of the longer group.
    const LayerHandle other = layer_from_config(
        {{"class_name", "MixtureOfExperts"}, {"config", layer->config()}}, JsonPath("layer"));
    const DTensor z = other(on_one_device(x.narrow(1, 0, 6).contiguous()), training_step(0));
    CHECK(difference(y.full().narrow(1, 0, 6), z.full(), 1e-12, 1e-14) == "");
    for (size_t i = 0; i < losses.size(); ++i) {
      CHECK(difference(losses[i].full(), other->losses()[i].full(), 1e-12) == "");
    }
  }
}

TEST_CASE("MixtureOfExperts draws second experts in training only") {
  const DTypeScope doubles("float64");
  const at::Tensor x = values({4, 16, 5}, 5);
  const auto made = [&](const char* policy, double threshold) {
    return MixtureOfExperts({.num_experts = 5,
                             .hidden_dim = 4,
                             .capacity_factor = 5,
                             .eval_capacity_factor = 5,
                             .second_expert_policy = policy,
                             .second_expert_threshold = threshold,
                             .name = "moe"});
  };
  const LayerHandle all = made("all", 0);
  const at::Tensor expected = all(on_one_device(x)).full();
  for (const char* policy : {"sampling", "random"}) {
    CAPTURE(policy);
    const LayerHandle layer = made(policy, 0.9);
    const auto drawn = [&](const CallContext& context) {
      return layer(on_one_device(x), context).full();
    };
    const at::Tensor first = drawn(training_step(0));
    CHECK(at::equal(first, drawn(training_step(0))));
    CHECK_FALSE(at::equal(first, drawn(training_step(1))));
    CHECK_FALSE(at::equal(first, expected));
    CHECK(at::equal(drawn({}), expected));
  }
  const LayerHandle random = made("random", 0.9);
  random(on_one_device(x), training_step(0));
  // First choices, and some of the second choices.
  const std::vector<double> counts = totals_of(random, "dropped");
  CHECK(counts[0] > 64);
  CHECK(counts[0] < 128);
  CHECK(counts[1] == counts[0]);
  CHECK(at::equal(made("random", 0)(on_one_device(x), training_step(0)).full(), expected));
}

TEST_CASE("MixtureOfExperts initializes each expert as a separate layer") {
  const LayerHandle layer = MixtureOfExperts({.num_experts = 16, .hidden_dim = 50, .name = "moe"});
  layer->build({{-1, 4, 30}});
  const at::Tensor kernel = layer->weights()[1].value().full();
  CHECK(kernel.abs().max().item<double>() == Approx(std::sqrt(6.0 / 80)).epsilon(1e-3));
  CHECK(layer->weights()[0].value().full().abs().max().item<double>() ==
        Approx(std::sqrt(6.0 / 46)).epsilon(0.02));
}

TEST_CASE("MixtureOfExperts refuses invalid arguments in one line") {
  const auto error = [](MixtureOfExpertsOptions options) {
    options.name = "moe";
    return error_line([&] { MixtureOfExperts{options}; });
  };
  CHECK_THAT(error({}), Contains("[MixtureOfExperts moe]") && Contains("num_experts"));
  CHECK_THAT(error({.num_experts = 4}), Contains("hidden_dim"));
  CHECK_THAT(error({.num_experts = 4, .hidden_dim = 4, .top_k = 0}), Contains("top_k is at least"));
  CHECK_THAT(error({.num_experts = 4, .hidden_dim = 4, .top_k = 5}),
             Contains("top_k different experts"));
  CHECK_THAT(
      error({.num_experts = 4, .hidden_dim = 4, .top_k = 3, .second_expert_policy = "random"}),
      Contains("second_expert_policy"));
  CHECK_THAT(error({.num_experts = 1, .hidden_dim = 4}), Contains("top_k different experts"));
  CHECK_THAT(error({.num_experts = 4, .hidden_dim = 4, .capacity_factor = 0}),
             Contains("capacity factors are positive"));
  CHECK_THAT(error({.num_experts = 4, .hidden_dim = 4, .z_loss = -1}), Contains("not negative"));
  CHECK_THAT(error({.num_experts = 4, .hidden_dim = 4, .second_expert_policy = "none"}),
             Contains("\"sampling\"") && Contains("\"none\""));
  CHECK_THAT(error({.num_experts = 4, .hidden_dim = 4, .dispatch = "hash"}), Contains("\"sort\""));
  const MixtureOfExperts layer({.num_experts = 4, .hidden_dim = 4, .name = "moe"});
  CHECK_THAT(error_line([&] { layer->build({{-1, 4}}); }), Contains("(batch, tokens, features)"));
  layer->build({{-1, 5, 3}});
  CHECK_THAT(error_line([&] { layer->output_shape({{2, 5, 4}}); }), Contains("3 features"));
}

}  // namespace mixture_of_experts_test
