#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/attention/attention.hpp>
#include <tessera/framework/ops/attention/rotary.hpp>
#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace rotary_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using at::Tensor;
using Catch::Matchers::Contains;
using ops::RotaryOptions;

Tensor normal(const Shape& shape) { return at::randn(shape, at::kDouble); }

/// Rotates every pair of x, (batch, T, heads, dim), as a complex number of angle positions[b][t] ·
/// frequencies[i].
Tensor rotated_by(const Tensor& x, const Tensor& positions, const std::vector<double>& frequencies,
                  bool interleaved) {
  const Tensor y = x.clone();
  const auto pairs = static_cast<int64_t>(frequencies.size());
  for (int64_t b = 0; b < x.size(0); ++b) {
    for (int64_t t = 0; t < x.size(1); ++t) {
      for (int64_t h = 0; h < x.size(2); ++h) {
        for (int64_t i = 0; i < pairs; ++i) {
          const double angle = positions[b][t].item<double>() * frequencies[static_cast<size_t>(i)];
          const int64_t first = interleaved ? 2 * i : i;
          const int64_t second = interleaved ? 2 * i + 1 : i + pairs;
          const double p = x[b][t][h][first].item<double>();
          const double q = x[b][t][h][second].item<double>();
          y[b][t][h][first].fill_(p * std::cos(angle) - q * std::sin(angle));
          y[b][t][h][second].fill_(q * std::cos(angle) + p * std::sin(angle));
        }
      }
    }
  }
  return y;
}

Function rotation(const RotaryOptions& options = {}) {
  return [=](const std::vector<DTensor>& in) {
    return ops::rotary(in[0], in.size() > 1 ? in[1] : DTensor(), options);
  };
}

Tensor first_steps(int64_t rows, int64_t steps) {
  return at::arange(steps, at::kLong).expand({rows, steps}).contiguous();
}

DTensor one_device(const Tensor& t) {
  return pack(t, Layout::replicated(virtual_mesh({1}), t.dim()));
}

/// Returns the angles by which the pairs of one step turn at position 1.
Tensor frequencies_of(int64_t dim, const RotaryOptions& options) {
  const Tensor x = at::cat({at::ones({1, dim / 2}), at::zeros({1, dim / 2})}, -1).to(at::kDouble);
  RotaryOptions of_steps = options;
  of_steps.axis = 0;
  const Tensor y =
      ops::rotary(one_device(x), one_device(at::ones({1}, at::kLong)), of_steps).full()[0];
  return at::atan2(y.narrow(0, dim / 2, dim / 2), y.narrow(0, 0, dim / 2));
}

}  // namespace

TEST_CASE("rotary turns pairs by global positions in every layout") {
  const Tensor x = normal({2, 5, 2, 6}), steps = first_steps(2, 5);
  const std::vector<double> frequencies = {1, std::pow(50, -1.0 / 3), std::pow(50, -2.0 / 3)};
  for (const bool interleaved : {false, true}) {
    const RotaryOptions options{.max_wavelength = 50, .interleaved = interleaved};
    CHECK(wrong_values({x}, rotation(options), rotated_by(x, steps, frequencies, interleaved)) ==
          "");
  }
}

TEST_CASE("rotary takes positions of all rows or of each, and leaves further features") {
  const Tensor x = normal({2, 4, 1, 5});
  const Tensor each = at::tensor({0, 1, 0, 1, 7, 8, 9, 0}, at::kLong).view({2, 4});
  const std::vector<double> frequencies = {1, 0.01};
  const RotaryOptions options{.rotated = 4};
  CHECK(wrong_values({x, each}, rotation(options), rotated_by(x, each, frequencies, false)) == "");
  CHECK(wrong_values({x, each[0].contiguous()}, rotation(options),
                     rotated_by(x, each[0].expand({2, 4}), frequencies, false)) == "");
}

TEST_CASE("gradients of rotary turn back") {
  const Tensor x = normal({2, 3, 1, 4});
  const Tensor positions = at::tensor({4, 0, 2}, at::kLong);
  for (const bool interleaved : {false, true}) {
    const RotaryOptions options{.interleaved = interleaved, .magnitude = 1.25};
    CHECK(wrong_gradients({x}, rotation(options)) == "");
    CHECK(wrong_gradients({x, positions}, rotation(options)) == "");
  }
}

TEST_CASE("scores of rotated queries and keys depend on distances only") {
  const Tensor q = normal({1, 4, 2, 8}), k = normal({1, 4, 2, 8}), v = normal({1, 4, 2, 8});
  const auto attended = [&](int64_t first) {
    const DTensor positions = one_device(at::arange(first, first + 4));
    return ops::attention(ops::rotary(one_device(q), positions),
                          ops::rotary(one_device(k), positions), one_device(v))
        .full();
  };
  CHECK(difference(attended(1000), attended(0), 1e-9, 1e-9) == "");
}

TEST_CASE("rotary of a sharded sequence sends nothing") {
  const Mesh mesh = virtual_mesh({2, 3});
  const Layout layout({"x", "y", unsharded, unsharded}, mesh);
  const DTensor x = pack(normal({2, 7, 1, 4}), layout);
  CommLog log;
  const CommLogScope scope(log);
  const DTensor y = ops::rotary(x);
  CHECK(log.to_string() == "");
  CHECK(y.layout() == layout);
}

TEST_CASE("scalings of rotary are those of Hugging Face's rope_scaling") {
  const int64_t dim = 8;
  const Tensor plain = frequencies_of(dim, {});
  CHECK(difference(plain, at::tensor({1.0, 0.1, 0.01, 0.001}, at::kDouble), 1e-12) == "");
  CHECK(difference(frequencies_of(dim, {.scaling = RotaryScaling::linear, .scaling_factor = 4}),
                   plain / 4, 1e-12) == "");
  // Turns in 1000 steps: 159, 15.9, 1.59 and 0.159.
  const RotaryOptions llama{.scaling = RotaryScaling::llama3,
                            .scaling_factor = 8,
                            .original_length = 1000,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4};
  const double share = (1000 * 0.01 / (2 * std::numbers::pi) - 1) / 3;
  CHECK(difference(
            frequencies_of(dim, llama),
            at::tensor({1.0, 0.1, share * 0.01 + (1 - share) * 0.01 / 8, 0.001 / 8}, at::kDouble),
            1e-12) == "");
  // 32 turns are pair 0.70, rounded down to 0; 1 turn is pair 2.2, rounded up to 3.
  const RotaryOptions yarn{
      .scaling = RotaryScaling::yarn, .scaling_factor = 4, .original_length = 1000};
  const auto blended = [](double frequency, double ramp) {
    return frequency * (1 - ramp) + frequency / 4 * ramp;
  };
  CHECK(difference(frequencies_of(dim, yarn),
                   at::tensor({1.0, blended(0.1, 1.0 / 3), blended(0.01, 2.0 / 3), 0.001 / 4},
                              at::kDouble),
                   1e-12) == "");
}

TEST_CASE("yarn scales rotated features by its magnitude, but not the others") {
  const Tensor x = normal({1, 3, 1, 6});
  RotaryOptions yarn{
      .rotated = 4, .scaling = RotaryScaling::yarn, .scaling_factor = 4, .original_length = 64};
  const Tensor scaled = ops::rotary(one_device(x), {}, yarn).full();
  yarn.magnitude = 1;
  const Tensor y = ops::rotary(one_device(x), {}, yarn).full();
  const double magnitude = 0.1 * std::log(4.0) + 1;
  CHECK(difference(scaled.narrow(-1, 0, 4), y.narrow(-1, 0, 4) * magnitude, 1e-12, 1e-12) == "");
  CHECK(at::equal(scaled.narrow(-1, 4, 2), x.narrow(-1, 4, 2)));
}

TEST_CASE("rotary rounds float16 and bfloat16 once, at large positions too") {
  const Tensor x = normal({1, 2, 1, 4}).to(at::kFloat);
  const Tensor positions = at::tensor({100000, 131071}, at::kLong);
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    const Tensor rounded = x.to(dtype);
    const Tensor y = ops::rotary(one_device(rounded), one_device(positions)).full();
    const Tensor expected =
        rotated_by(rounded.to(at::kDouble), positions.unsqueeze(0), {1, 0.01}, false);
    CHECK(difference(y, expected.to(at::kFloat).to(dtype), dtype == at::kHalf ? 1e-3 : 8e-3,
                     1e-6) == "");
  }
}

TEST_CASE("rotary refuses what it cannot rotate") {
  const DTensor x = one_device(normal({2, 3, 1, 5}));
  const auto refuses = [&](const RotaryOptions& options, const char* rule,
                           const DTensor& positions = {}) {
    CHECK_THROWS_WITH(ops::rotary(x, positions, options), Contains(rule));
  };
  refuses({}, "an even number of features");
  refuses({.rotated = 6}, "an even number of features");
  refuses({.rotated = 4, .axis = 3}, "before the last one");
  refuses({.max_wavelength = 1, .rotated = 4}, "max_wavelength");
  refuses({.rotated = 4, .scaling = RotaryScaling::linear, .scaling_factor = 0.5},
          "scaling_factor");
  refuses({.rotated = 4, .scaling = RotaryScaling::yarn}, "original_length");
  refuses({.rotated = 4}, "positions must be broadcast to", one_device(at::zeros({4}, at::kLong)));
  refuses({.rotated = 4}, "positions", one_device(at::zeros({3}, at::kDouble)));
}

}  // namespace rotary_test
