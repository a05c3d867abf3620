#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/layouts.hpp"

namespace random_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

constexpr Seed seed{7, -3};

Function dropping(double rate) {
  return [rate](const std::vector<DTensor>& in) {
    return ops::dropout(in[0], rate, ops::seed_input(seed, in[0].mesh()));
  };
}

DTensor stateless_uniform_values(const Shape& shape, Seed at, double a, double b) {
  return stateless_uniform(shape, at, a, b);
}
DTensor stateless_normal_values(const Shape& shape, Seed at, double a, double b) {
  return stateless_normal(shape, at, a, b, at::kDouble);
}
DTensor truncated_normal_values(const Shape& shape, Seed at, double a, double b) {
  return stateless_truncated_normal(shape, at, a, b);
}

at::Tensor reference(const at::Tensor& x, double rate) {
  const Shape shape = x.sizes().vec();
  std::vector<Interval> all;
  for (int64_t n : shape) all.push_back({0, n});
  const at::Tensor draw = at::empty(shape, at::kFloat);
  stateless_uniform(seed, shape, all, 0, 1, draw.data_ptr<float>());
  return at::where(draw.ge(float(rate)), x / (1 - rate), at::zeros_like(x));
}

}  // namespace

TEST_CASE("dropout drops the same elements in every layout") {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{5, 3}, Shape{2, 3, 5}}) {
    const at::Tensor x = at::randn(shape, at::kDouble);
    CHECK(wrong_values({x}, dropping(0.4), reference(x, 0.4)) == "");
  }
}

TEST_CASE("the gradient of dropout drops the same elements") {
  CHECK(wrong_gradients({at::randn({5, 3}, at::kDouble)}, dropping(0.4)) == "");
  CHECK(wrong_gradients({at::randn({3}, at::kDouble)}, dropping(0)) == "");
}

TEST_CASE("dropout drops at its rate and keeps the expectation") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const Layout layout({"batch", unsharded}, mesh);
  for (double rate : {0.1, 0.5, 0.9}) {
    const DTensor y =
        ops::dropout(pack(at::ones({200, 500}), layout), rate, ops::seed_input(seed, mesh));
    CHECK(y.layout() == layout);
    const at::Tensor full = y.full();
    CHECK(full.eq(0).to(at::kDouble).mean().item<double>() == Approx(rate).margin(0.005));
    CHECK(full.max().item<float>() == Approx(1 / (1 - rate)));
    CHECK(full.gt(0).logical_and(full.ne(full.max())).any().item<bool>() == false);
  }
}

TEST_CASE("dropout takes another seed without a new plan") {
  const Mesh mesh = create_mesh({{"batch", 2}});
  const DTensor x = pack(at::ones({64}), Layout({"batch"}, mesh));
  const at::Tensor first = ops::dropout(x, 0.5, ops::seed_input({1, 2}, mesh)).full();
  const PlanStats before = plan_stats();
  const at::Tensor second = ops::dropout(x, 0.5, ops::seed_input({1, 3}, mesh)).full();
  CHECK(plan_stats().made == before.made);
  CHECK(difference(second, first) != "");
  CHECK(difference(ops::dropout(x, 0.5, ops::seed_input({1, 2}, mesh)).full(), first) == "");
}

TEST_CASE("dropout does not communicate, and a dropped infinity is 0") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const at::Tensor x = at::full({4, 6}, INFINITY);
  CommLog comm;
  const CommLogScope scope(comm);
  const DTensor y =
      ops::dropout(pack(x, Layout({"batch", "model"}, mesh)), 0.5, ops::seed_input(seed, mesh));
  CHECK(comm.to_string() == "");
  CHECK(difference(y.full(), reference(x, 0.5)) == "");
}

TEST_CASE("random numbers of a seed input equal those of the seed, in any layout") {
  const Shape shape{5, 3};
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});
  const DTensor key = ops::seed_input(seed, mesh);
  const auto in_layout = [&](const auto& make) {
    for (const Layout& layout : all_layouts(mesh, 2)) {
      const auto [drawn, expected] = make(layout);
      CHECK(drawn.layout() == layout);
      CHECK(difference(drawn.full(), expected.full()) == "");
    }
  };
  in_layout([&](const Layout& layout) {
    return std::pair(call_with_layout(ops::random_uniform, layout, shape, key, -1, 2, at::kFloat),
                     call_with_layout(stateless_uniform_values, layout, shape, seed, -1, 2));
  });
  in_layout([&](const Layout& layout) {
    return std::pair(call_with_layout(ops::random_normal, layout, shape, key, 3, 2, at::kDouble),
                     call_with_layout(stateless_normal_values, layout, shape, seed, 3, 2));
  });
  in_layout([&](const Layout& layout) {
    return std::pair(
        call_with_layout(ops::random_truncated_normal, layout, shape, key, 0, 1, at::kFloat),
        call_with_layout(truncated_normal_values, layout, shape, seed, 0, 1));
  });
  const Layout layout = Layout::replicated(mesh, 2);
  CHECK_THROWS_WITH(call_with_layout(ops::random_normal, layout, shape, key, 0, 1, at::kLong),
                    Catch::Matchers::Contains("random_normal"));
}

TEST_CASE("dropout of rate 0 is x itself; invalid rates and seeds are refused") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const DTensor x = pack(at::ones({4}), Layout::replicated(mesh, 1));
  const DTensor key = ops::seed_input(seed, mesh);
  CHECK(ops::dropout(x, 0, key).id() == x.id());
  for (double rate : {-0.1, 1.0, 1.5, std::nan("")}) {
    CHECK_THROWS_AS(ops::dropout(x, rate, key), ConfigError);
  }
  CHECK_THROWS_AS(ops::dropout(x, 0.5, x), ConfigError);
  CHECK_THROWS_AS(ops::dropout(key, 0.5, key), ConfigError);
}

TEST_CASE("classes are drawn with softmax's probabilities, equally in every layout") {
  const int64_t rows = 20000;
  const at::Tensor logits = at::tensor({0.0F, 2.0F, -INFINITY, 1.0F, -1.0F}).expand({rows, 5});
  const auto drawing = [](const std::vector<DTensor>& in) {
    return ops::categorical(in[0], ops::seed_input(seed, in[0].mesh()));
  };
  const Mesh one = create_mesh({{"batch", 1}});
  const at::Tensor drawn = drawing({pack(logits.contiguous(), Layout::replicated(one, 2))}).full();
  CHECK(drawn.scalar_type() == at::kLong);
  const at::Tensor often = at::bincount(drawn, {}, 5).to(at::kDouble) / double(rows);
  const at::Tensor expected = logits[0].to(at::kDouble).softmax(0);
  CHECK(often[2].item<double>() == 0);
  // Five standard deviations.
  const at::Tensor margin = (expected * (1 - expected) / double(rows)).sqrt() * 5;
  CHECK((often - expected).abs().le(margin).all().item<bool>());
  const at::Tensor few = logits.narrow(0, 0, 24).reshape({6, 4, 5}).contiguous();
  const at::Tensor classes = drawing({pack(few, Layout::replicated(one, 3))}).full();
  CHECK(wrong_values({few}, drawing, classes, 0) == "");
  const at::Tensor other =
      ops::categorical(pack(few, Layout::replicated(one, 3)), ops::seed_input({7, -2}, one)).full();
  CHECK(difference(other, classes) != "");
}

TEST_CASE("float16 and bfloat16 classes are drawn in float32; rows of -inf; invalid dtypes") {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const DTensor key = ops::seed_input(seed, mesh);
  const auto draw = [&](const at::Tensor& logits) {
    return ops::categorical(pack(logits, Layout::replicated(mesh, logits.dim())), key);
  };
  const at::Tensor logits = at::zeros({200, 7});
  CHECK(difference(draw(logits.to(at::kBFloat16)).full(), draw(logits).full()) == "");
  // One class remains, however unlikely; then none.
  at::Tensor masked = at::full({200, 7}, -INFINITY);
  masked.select(1, 4).fill_(-1e30);
  CHECK(draw(masked).full().eq(4).all().item<bool>());
  CHECK(draw(at::full({2, 3}, -INFINITY)).full().eq(0).all().item<bool>());
  CHECK_THROWS_AS(draw(at::zeros({2, 3}, at::kLong)), ConfigError);
  CHECK_THROWS_AS(draw(at::zeros({})), ShapeError);
  CHECK_THROWS_AS(draw(at::zeros({2, 0})), ShapeError);
}

}  // namespace random_test
