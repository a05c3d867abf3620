#include <tessera/layers/experts/internal/expert_routing.hpp>

#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/keras_layers.hpp"
#include "tests/support/layouts.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace expert_routing_test {

using namespace tessera;
using namespace tessera::detail;
using test::difference;

namespace {

/// Deterministic numbers, as numbers() of make_experts.py.
at::Tensor numbers(const Shape& shape, int64_t seed) {
  const at::Tensor index = at::arange(numel(shape), at::kLong);
  const at::Tensor values = at::remainder(index * 7919 + seed * 104729 + index * index * 31, 2003);
  return (values.to(at::kDouble) / 1001 - 1).reshape(shape);
}

at::Tensor logits_of(const Json& json) {
  at::Tensor logits = 3 * numbers(json.at("shape").get<Shape>(), json.at("seed").get<int64_t>());
  if (json.at("ties").get<bool>()) logits = at::round(logits);
  const auto favourite = json.at("favourite").get<int64_t>();
  if (favourite >= 0) logits.select(-1, favourite) += 8;
  return logits;
}

/// Returns the case's mask: bool (G, S), or undefined for none.
at::Tensor mask_of(const Json& json) {
  const auto lengths = json.at("lengths").get<std::vector<int64_t>>();
  if (lengths.empty()) return {};
  return at::arange(json.at("shape")[1].get<int64_t>(), at::kLong)
      .lt(at::tensor(lengths, at::kLong).unsqueeze(-1));
}

at::Tensor doubles(const Json& json) {
  return at::tensor(json.get<std::vector<double>>(), at::kDouble);
}

struct Result {
  at::Tensor dispatch, combine, gradient, requested, assigned;
  double aux_loss = 0, z_loss = 0;
};

/// Routes the case's logits on this layout.
Result routed(const Json& json, const Layout& layout, at::ScalarType dtype, int64_t capacity) {
  const DTensor logits = pack(logits_of(json).to(dtype), layout);
  const at::Tensor token_mask = mask_of(json);
  const Mesh& mesh = layout.mesh();
  const DTensor mask =
      token_mask.defined() ? pack(token_mask, Layout::replicated(mesh, 2)) : DTensor();
  const DTensor upstream =
      pack(numbers(logits.shape(), json.at("seed").get<int64_t>() + 1).to(dtype).unsqueeze(-1),
           Layout::replicated(mesh, 4));
  GradientTape tape;
  tape.watch(logits);
  const Routing routing = route_tokens(logits, mask,
                                       {.top_k = json.at("top_k").get<int64_t>(),
                                        .capacity = capacity,
                                        .legacy = json.at("legacy").get<bool>()});
  const DTensor combine = combine_tensor(routing, capacity);
  DTensor loss = ops::sum(combine * upstream) + routing.aux_loss;
  if (!mask.defined()) loss = loss + routing.z_loss;
  Result result{.dispatch = dispatch_tensor(routing, capacity).full(),
                .combine = combine.full(),
                .gradient = tape.gradient(loss, logits).full(),
                .requested = routing.requested.full(),
                .assigned = routing.assigned.full()};
  result.aux_loss = routing.aux_loss.full().item<double>();
  result.z_loss = routing.z_loss.full().item<double>();
  return result;
}

}  // namespace

TEST_CASE("experts are selected as by Lingvo, fairscale and Switch Transformers") {
  const Layout replicated = Layout::replicated(test::virtual_mesh({1}), 3);
  const Json& cases = test::golden_part("experts.json", "cases");
  CHECK(cases.size() == 200);
  std::map<std::string, int64_t> dropped;
  for (const Json& json : cases) {
    const auto shape = json.at("shape").get<Shape>();
    const auto golden_capacity = json.at("capacity").get<int64_t>();
    const int64_t capacity = expert_capacity(shape[1], shape[2], json.at("top_k").get<int64_t>(),
                                             json.at("factor").get<double>());
    // The capacity never exceeds the number of tokens.
    REQUIRE(capacity == std::min(golden_capacity, shape[1]));
    at::Tensor gates = at::zeros({shape[0] * shape[1] * shape[2] * golden_capacity}, at::kDouble);
    const at::Tensor at = at::tensor(json.at("at").get<std::vector<int64_t>>(), at::kLong);
    gates.index_put_({at}, doubles(json.at("gates")));
    gates = gates.reshape({shape[0], shape[1], shape[2], golden_capacity}).narrow(-1, 0, capacity);
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
      CAPTURE(json.at("from"), json.at("seed"), dtype);
      const Result result = routed(json, replicated, dtype, capacity);
      CHECK(at::equal(result.dispatch.to(at::kDouble), gates.ne(0).to(at::kDouble)));
      CHECK(difference(result.combine.to(at::kDouble), gates, 1e-6, 1e-7) == "");
      CHECK(result.aux_loss == Approx(json.at("aux_loss").get<double>()).epsilon(1e-6));
      CHECK(difference(result.gradient.to(at::kDouble), doubles(json.at("gradient")).reshape(shape),
                       1e-5, 1e-6) == "");
      CHECK(result.assigned.item<double>() == static_cast<double>(at.numel()));
      dropped[json.at("from")] += result.requested.sum().item<double>() > at.numel();
      if (!json.at("lengths").empty()) continue;
      CHECK(result.z_loss == Approx(json.at("z_loss").get<double>()).epsilon(1e-6));
    }
  }
  CHECK(dropped["lingvo"] > 20);
  CHECK(dropped["fairscale"] > 5);
  CHECK(dropped["switch"] > 20);
}

TEST_CASE("experts are selected equally under every layout of the logits") {
  const Json& cases = test::golden_part("experts.json", "cases");
  for (size_t c = 0; c < cases.size(); c += 9) {
    const auto shape = cases[c].at("shape").get<Shape>();
    const int64_t capacity = std::min(cases[c].at("capacity").get<int64_t>(), shape[1]);
    const Result expected =
        routed(cases[c], Layout::replicated(test::virtual_mesh({1}), 3), at::kDouble, capacity);
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{3}, {2, 2}}) {
      for (const Layout& layout : test::all_layouts(test::virtual_mesh(sizes), 3)) {
        CAPTURE(c, test::short_name({layout}));
        const Result result = routed(cases[c], layout, at::kDouble, capacity);
        CHECK(at::equal(result.dispatch, expected.dispatch));
        CHECK(at::equal(result.requested, expected.requested));
        CHECK(at::equal(result.assigned, expected.assigned));
        CHECK(difference(result.combine, expected.combine, 1e-12) == "");
        CHECK(difference(result.gradient, expected.gradient, 1e-10, 1e-12) == "");
        CHECK(result.aux_loss == Approx(expected.aux_loss).epsilon(1e-12));
        CHECK(result.z_loss == Approx(expected.z_loss).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("slots by index equal those of the dispatch tensor") {
  const Layout replicated = Layout::replicated(test::virtual_mesh({1}), 3);
  for (const Json& json : test::golden_part("experts.json", "cases")) {
    const auto shape = json.at("shape").get<Shape>();
    const int64_t capacity = std::min(json.at("capacity").get<int64_t>(), shape[1]);
    CAPTURE(json.at("seed"), capacity);
    const at::Tensor token_mask = mask_of(json);
    const DTensor mask = token_mask.defined()
                             ? pack(token_mask, Layout::replicated(replicated.mesh(), 2))
                             : DTensor();
    const Routing routing =
        route_tokens(pack(logits_of(json), replicated), mask,
                     {.top_k = json.at("top_k").get<int64_t>(), .capacity = capacity});
    const at::Tensor dispatch = dispatch_tensor(routing, capacity).full();
    const auto [tokens, filled] = slot_tokens(routing, capacity);
    // (G, E, C, S)
    const at::Tensor by_number =
        at::one_hot(tokens.full(), shape[1]).to(at::kDouble) * filled.full().unsqueeze(-1);
    CHECK(at::equal(by_number.permute({0, 3, 1, 2}), dispatch));
    at::Tensor by_token = at::zeros({shape[0], shape[1], shape[2] * capacity}, at::kDouble);
    for (const ExpertChoice& choice : routing.choices) {
      by_token.scatter_add_(-1, token_slots(choice, capacity).full().unsqueeze(-1),
                            choice.taken.full().sum(-1, true));
    }
    CHECK(at::equal(by_token.reshape(dispatch.sizes()), dispatch));
  }
}

TEST_CASE("an expert's capacity follows from the tokens of a group") {
  CHECK(expert_capacity(64, 8, 2, 2) == 16);
  CHECK(expert_capacity(64, 8, 2, 1.25) == 12);  // 10, rounded up to a multiple of 4
  CHECK(expert_capacity(64, 8, 1, 1.25) == 10);
  CHECK(expert_capacity(64, 32, 2, 1) == 4);
  CHECK(expert_capacity(8, 64, 1, 1) == 1);
  CHECK(expert_capacity(3, 64, 2, 1) == 3);
  CHECK(expert_capacity(64, 2, 2, 1e18) == 64);
}

}  // namespace expert_routing_test
