#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/random.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <functional>
#include <numbers>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"

namespace random_variates_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using at::Tensor;

constexpr int64_t many = 40000;

Mesh one_device() { return create_mesh({{"x", 1}}); }
DTensor seed_on(const Mesh& mesh, int64_t number = 5) {
  return ops::seed_input({number, -2}, mesh);
}

/// Checks mean and variance of numbers within five standard errors; that of the variance assumes a
/// kurtosis of at most `kurtosis`.
void check_moments(const Tensor& numbers, double mean, double variance, double kurtosis) {
  const auto n = static_cast<double>(numbers.numel());
  const Tensor x = numbers.to(at::kDouble);
  CHECK(x.mean().item<double>() == Approx(mean).margin(5 * std::sqrt(variance / n)));
  CHECK(x.var().item<double>() ==
        Approx(variance).margin(5 * variance * std::sqrt((kurtosis - 1) / n)));
}

/// Returns the Kolmogorov-Smirnov statistic of numbers times the root of their count: the largest
/// distance of their distribution from cdf(x). Above 1.95 for one sample in a thousand.
double distance(const Tensor& numbers, const std::function<Tensor(const Tensor&)>& cdf) {
  const Tensor x = std::get<0>(numbers.to(at::kDouble).flatten().sort());
  const int64_t n = x.numel();
  const Tensor below = at::arange(n, at::kDouble).div(double(n));
  const Tensor expected = cdf(x);
  const auto above = (below + 1.0 / double(n) - expected).max().item<double>();
  const auto under = (expected - below).max().item<double>();
  return std::max(above, under) * std::sqrt(double(n));
}

Tensor gamma_cdf(const Tensor& x, double alpha) {
  return at::special_gammainc(at::full_like(x, alpha), x);
}

}  // namespace

TEST_CASE("gamma numbers have the gamma distribution") {
  const Mesh mesh = one_device();
  for (const double alpha : {0.2, 0.9, 1.0, 1.7, 12.0}) {
    INFO(alpha);
    const Tensor x = ops::random_gamma({many}, alpha, seed_on(mesh), at::kDouble).full();
    CHECK(x.ge(0).all().item<bool>());
    check_moments(x, alpha, alpha, 3 + 6 / alpha);
    CHECK(distance(x, [&](const Tensor& t) { return gamma_cdf(t, alpha); }) < 1.95);
  }
}

TEST_CASE("beta numbers have the beta distribution") {
  const Mesh mesh = one_device();
  const auto draw = [&](double a, double b) {
    return ops::random_beta({many}, a, b, seed_on(mesh), at::kDouble).full();
  };
  check_moments(draw(2, 3), 0.4, 6.0 / (25 * 6), 3);
  const Tensor power = draw(1, 3);
  CHECK(distance(power, [](const Tensor& x) { return 1 - (1 - x).pow(3); }) < 1.95);
  const Tensor arcsine = draw(0.5, 0.5);
  const double scale = 2 / std::numbers::pi;
  CHECK(distance(arcsine, [&](const Tensor& x) { return x.sqrt().asin() * scale; }) < 1.95);
  CHECK(power.ge(0).all().item<bool>());
  CHECK(power.le(1).all().item<bool>());
}

TEST_CASE("binomial numbers have the binomial distribution") {
  const Mesh mesh = one_device();
  // Few successes, many, few failures, and many of each.
  for (const auto& [count, p] :
       {std::pair(10, 0.3), {200, 0.01}, {1000, 0.02}, {40, 0.9}, {30, 0.5}, {7, 0.8}}) {
    INFO(count << " " << p);
    const Tensor x = ops::random_binomial({many}, count, p, seed_on(mesh)).full();
    CHECK(x.scalar_type() == at::kFloat);
    CHECK(difference(x.round(), x) == "");
    check_moments(x, count * p, count * p * (1 - p), 3 + 1 / (count * p * (1 - p)));
    const Tensor k = at::arange(count + 1, at::kDouble);
    const Tensor log_choose =
        std::lgamma(count + 1.0) - at::lgamma(k + 1) - at::lgamma(count - k + 1.0);
    const Tensor expected =
        (log_choose + k * std::log(p) + (count - k) * std::log1p(-p)).exp().cumsum(0);
    const Tensor often = at::bincount(x.to(at::kLong), {}, count + 1).to(at::kDouble);
    const Tensor found = often.cumsum(0) / double(many);
    CHECK((found - expected).abs().max().item<double>() * std::sqrt(double(many)) < 1.95);
  }
}

TEST_CASE("certain events, and parameters without a distribution") {
  const Mesh mesh = one_device();
  const auto binomial = [&](double count, double p) {
    return ops::random_binomial({5}, count, p, seed_on(mesh)).full();
  };
  CHECK(difference(binomial(6, 0), at::zeros({5})) == "");
  CHECK(difference(binomial(6, 1), at::full({5}, 6.0F)) == "");
  CHECK(difference(binomial(6, 1.5), at::full({5}, 6.0F)) == "");
  CHECK(difference(binomial(6, -0.5), at::zeros({5})) == "");
  CHECK(difference(binomial(0, 0.5), at::zeros({5})) == "");
  CHECK(binomial(5, NAN).isnan().all().item<bool>());
  for (const double alpha : {0.0, -1.0, std::nan("")}) {
    CHECK(ops::random_gamma({3}, alpha, seed_on(mesh)).full().isnan().all().item<bool>());
  }
}

TEST_CASE("random integers are uniform, and a shuffle permutes") {
  const Mesh mesh = one_device();
  for (const at::ScalarType dtype : {at::kInt, at::kLong, at::kShort}) {
    const Tensor x = ops::random_randint({many}, -3, 5, seed_on(mesh), dtype).full();
    CHECK(x.scalar_type() == dtype);
    const Tensor often = at::bincount(x.to(at::kLong) + 3, {}, 8).to(at::kDouble);
    REQUIRE(often.numel() == 8);
    // Chi squared of 7 degrees of freedom is above 24.3 for one sample in a thousand.
    CHECK((often - many / 8.0).square().sum().item<double>() / (many / 8.0) < 24.3);
  }
  const Tensor x = at::arange(5, at::kLong);
  const Tensor sums = at::zeros({5, 5}, at::kLong);
  constexpr int64_t times = 2000;
  for (int64_t i = 0; i < times; ++i) {
    const DTensor value = pack(x, Layout::replicated(mesh, 1));
    const Tensor y = ops::random_shuffle(value, seed_on(mesh, i)).full();
    CHECK(difference(std::get<0>(y.sort()), x) == "");
    sums.index_put_({x, y}, at::ones({5}, at::kLong), /*accumulate=*/true);
  }
  // Each value is as often in each position: within five standard deviations of 18.
  CHECK((sums - times / 5).abs().max().item<int64_t>() < 90);
}

TEST_CASE("random numbers are the same in every layout, and parameters broadcast") {
  const Tensor alpha = at::rand({5, 3}, at::kDouble) + 0.2, row = alpha[0];
  const auto gamma = [](const std::vector<DTensor>& in) {
    return ops::random_gamma({5, 3}, in[0], seed_on(in[0].mesh()), at::kDouble);
  };
  const auto on_one = [&](const Tensor& x) {
    return gamma({pack(x, Layout::replicated(one_device(), x.dim()))}).full();
  };
  CHECK(wrong_values({alpha}, gamma, on_one(alpha), 0) == "");
  CHECK(wrong_values({row}, gamma, on_one(row), 0) == "");
  CHECK(difference(on_one(row), on_one(row.expand({5, 3}).contiguous())) == "");
  const Tensor x = at::randn({5, 3}, at::kDouble);
  for (const int64_t axis : {0, 1, -1}) {
    const auto shuffle = [axis](const std::vector<DTensor>& in) {
      return ops::random_shuffle(in[0], seed_on(in[0].mesh()), axis);
    };
    const Tensor y = shuffle({pack(x, Layout::replicated(one_device(), 2))}).full();
    CHECK(wrong_values({x}, shuffle, y) == "");
    CHECK(wrong_gradients({x}, shuffle) == "");
  }
}

TEST_CASE("random draws do not communicate and keep the default layout") {
  const Mesh mesh = create_mesh({{"batch", 4}});
  const Layout layout({"batch", unsharded}, mesh);
  CommLog log;
  const CommLogScope scope(log);
  const DTensor key = seed_on(mesh);
  const Shape shape{8, 3};
  CHECK(call_with_layout([&] { return ops::random_randint(shape, 0, 9, key); }, layout).layout() ==
        layout);
  CHECK(call_with_layout([&] { return ops::random_beta(shape, 2, 0.5, key); }, layout).layout() ==
        layout);
  CHECK(log.to_string() == "");
}

TEST_CASE("float16 and bfloat16 numbers are rounded float32 ones") {
  const Mesh mesh = one_device();
  for (const at::ScalarType half : {at::kHalf, at::kBFloat16}) {
    const auto draw = [&](at::ScalarType dtype) {
      return ops::random_beta({50}, 0.3, 2, seed_on(mesh), dtype).full();
    };
    CHECK(difference(draw(half), draw(at::kFloat).to(half)) == "");
  }
}

TEST_CASE("random draws name invalid arguments") {
  const Mesh mesh = one_device();
  const DTensor key = seed_on(mesh), wrong = pack(at::ones({2}), Layout::replicated(mesh, 1));
  CHECK_THROWS_WITH(ops::random_randint({3}, 5, 5, key), Contains("minval") && Contains("[5, 5)"));
  CHECK_THROWS_AS(ops::random_randint({3}, 0, int64_t{1} << 40, key), ConfigError);
  CHECK_THROWS_AS(ops::random_randint({3}, 0, 5, key, at::kFloat), ConfigError);
  CHECK_THROWS_AS(ops::random_randint({3}, 0, 5, wrong), ConfigError);
  CHECK_THROWS_AS(ops::random_gamma({3}, 1, key, at::kLong), ConfigError);
  CHECK_THROWS_AS(ops::random_gamma({3}, 1, wrong), ConfigError);
  CHECK_THROWS_AS(ops::random_gamma({4}, wrong, key), ShapeError);
  CHECK_THROWS_AS(ops::random_shuffle(wrong, key, 1), ShapeError);
}

}  // namespace random_variates_test
