#include <tessera/framework/ops/attention/attention.hpp>

#include <cmath>
#include <limits>
#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/error_line.hpp"
#include "tests/support/function_check.hpp"

/// Attention with shared heads, windows, lengths and sharded causal steps.
namespace attention_forms_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using Inputs = std::vector<DTensor>;
using FullTensors = std::vector<at::Tensor>;

/// Returns query, key and value.
FullTensors operands(const Shape& q, const Shape& k, at::ScalarType dtype = at::kDouble) {
  return {at::randn(q).to(dtype), at::randn(k).to(dtype), at::randn(k).to(dtype)};
}

/// Returns which steps may attend to which, by their positions.
at::Tensor open_steps(int64_t t, int64_t s, const ops::SdpaOptions& options) {
  const at::Tensor ahead = at::arange(t).unsqueeze(-1) - at::arange(s);
  at::Tensor open = at::ones({t, s}, at::kBool);
  if (options.causal) open = open.logical_and(ahead.ge(0));
  if (options.window) open = open.logical_and(ahead.abs().lt(*options.window));
  return open;
}

/// Attention by its textbook formula; a step that may attend to nothing gives the mean, or zeros.
at::Tensor by_hand(const FullTensors& in, const at::Tensor& open, bool zeros = false) {
  const int64_t group = in[0].size(2) / in[1].size(2);
  const auto heads = [&](const at::Tensor& x, int64_t times) {
    return x.repeat_interleave(times, 2).transpose(1, 2);
  };
  const at::Tensor q = heads(in[0], 1), k = heads(in[1], group), v = heads(in[2], group);
  const at::Tensor scores = at::matmul(q, k.transpose(-1, -2)) / std::sqrt(double(q.size(3)));
  const at::Tensor masked =
      scores.masked_fill(open.logical_not(), std::numeric_limits<double>::lowest());
  const at::Tensor y = at::matmul(at::softmax(masked, -1), v);
  return (zeros ? y * open.any(-1, true) : y).transpose(1, 2);
}

Function attending(const ops::SdpaOptions& options) {
  return [options](const Inputs& x) { return ops::attention(x[0], x[1], x[2], {}, options); };
}

/// Returns the result and the gradients of the sum of its squares.
FullTensors results(const Inputs& in, const ops::SdpaOptions& options, const DTensor& mask = {}) {
  GradientTape tape;
  for (const DTensor& value : in) tape.watch(value);
  const DTensor y = ops::attention(in[0], in[1], in[2], mask, options);
  FullTensors list = {y.full().clone()};
  for (const DTensor& gradient : tape.gradient(ops::sum(y * y), in)) {
    list.push_back(gradient.full().clone());
  }
  return list;
}

/// Packs each on `mesh`, sharded over its only dimension along an axis of its own; -1: replicated.
Inputs cut(const FullTensors& in, const Mesh& mesh, const std::vector<int>& axes) {
  Inputs values;
  for (size_t i = 0; i < in.size(); ++i) {
    LayoutSpec spec(4, unsharded);
    if (axes[i] >= 0) spec[size_t(axes[i])] = mesh.dim_names()[0];
    values.push_back(pack(in[i], Layout(spec, mesh)));
  }
  return values;
}

Inputs replicated(const FullTensors& in) {
  Inputs values;
  for (const at::Tensor& x : in) {
    values.push_back(pack(x, Layout::replicated(default_mesh(), x.dim())));
  }
  return values;
}

std::string wrong_results(const FullTensors& actual, const FullTensors& expected,
                          double tolerance = 1e-10) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string wrong = difference(actual[i], expected[i], tolerance, tolerance);
    if (!wrong.empty()) return str(i ? str("gradient ", i - 1) : "result", ": ", wrong);
  }
  return "";
}

/// Returns the bytes that each device receives, forward and backward.
std::pair<double, double> received(const Inputs& in, const ops::SdpaOptions& options) {
  GradientTape tape;
  for (const DTensor& value : in) tape.watch(value);
  CommLog forward, backward;
  DTensor y;
  {
    const CommLogScope scope(forward);
    y = ops::attention(in[0], in[1], in[2], {}, options);
  }
  const CommLogScope scope(backward);
  tape.gradient(y, in, {.output_gradient = y});
  return {forward.received(), backward.received()};
}

constexpr int heads_axis = 2, steps_axis = 1, unsharded_axis = -1;

}  // namespace

TEST_CASE("shared key and value heads equal repeated ones, in every layout") {
  for (const int64_t shared : {1, 2, 3}) {
    CAPTURE(shared);
    const FullTensors in = operands({2, 3, 6, 2}, {2, 4, shared, 2});
    CHECK(wrong_values(in, attending({}), by_hand(in, open_steps(3, 4, {}))) == "");
    CHECK(wrong_gradients(in, attending({.causal = true})) == "");
  }
}

TEST_CASE("six heads share two on 2 to 7 devices, in every layout") {
  const FullTensors in = operands({2, 3, 6, 2}, {2, 4, 2, 2});
  const FullTensors expected = results(replicated(in), {});
  for (const int64_t devices : {2, 3, 4, 5, 7}) {
    const Mesh mesh = create_mesh({{"model", devices}}, virtual_cpus(devices));
    for (const std::vector<int>& axes : {std::vector{heads_axis, heads_axis, heads_axis},
                                         {heads_axis, unsharded_axis, unsharded_axis},
                                         {unsharded_axis, heads_axis, heads_axis},
                                         {heads_axis, heads_axis, unsharded_axis}}) {
      CAPTURE(devices, axes);
      CHECK(wrong_results(results(cut(in, mesh, axes), {}), expected) == "");
    }
  }
}

TEST_CASE("shared heads sharded like the query's cost nothing, else only the missing heads") {
  const FullTensors in = operands({2, 3, 6, 2}, {2, 4, 2, 2});
  const auto cost = [&](int64_t devices) {
    const Mesh mesh = create_mesh({{"model", devices}}, virtual_cpus(devices));
    return received(cut(in, mesh, {heads_axis, heads_axis, heads_axis}), {});
  };
  CHECK(cost(2) == std::pair(0.0, 0.0));
  // Three devices hold 2 query heads each. The first holds no shared head, the second one of the
  // two it needs: each receives one head of key and one of value, 2 rows by 4 steps by 2 features
  // of 8 bytes.
  constexpr double head = 2 * 4 * 2 * 8;
  CHECK(cost(3).first == 2 * head);
  // A shared head's gradient sums over three query heads, one or two of which are on other devices.
  CHECK(cost(3).second <= 2 * head + 2 * 2 * head);
}

TEST_CASE("groups of heads in float16 and bfloat16, with masks, equal repeated heads") {
  const FullTensors exact = operands({2, 70, 6, 8}, {2, 90, 2, 8});
  const at::Tensor mask = at::rand({2, 6, 1, 90}).gt(0.4);
  const DTensor keys = pack(mask, Layout::replicated(default_mesh(), 4));
  const at::Tensor y = by_hand(exact, mask.logical_and(open_steps(70, 90, {.causal = true})));
  for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-12},
                                         {at::kFloat, 1e-5},
                                         {at::kBFloat16, 4e-2},
                                         {at::kHalf, 5e-3}}) {
    FullTensors in;
    for (const at::Tensor& x : exact) in.push_back(x.to(dtype));
    const Inputs values = replicated(in);
    const DTensor actual = ops::attention(values[0], values[1], values[2], keys, {.causal = true});
    CHECK(difference(actual.full().to(at::kDouble), y, tolerance, tolerance) == "");
  }
}

TEST_CASE("windows, causal or not, equal those of a mask, in every layout") {
  for (const auto& [t, s] : {std::pair<int64_t, int64_t>{4, 4}, {3, 5}, {6, 3}}) {
    for (const int64_t window : {1, 2, 3, 9}) {
      for (const bool causal : {false, true}) {
        CAPTURE(t, s, window, causal);
        const ops::SdpaOptions options{.causal = causal, .window = window};
        const FullTensors in = operands({2, t, 2, 2}, {2, s, 2, 2});
        const at::Tensor open = open_steps(t, s, options);
        CHECK(wrong_values(in, attending(options), by_hand(in, open)) == "");
        ops::SdpaOptions zeros = options;
        zeros.zeros = true;
        CHECK(wrong_values(in, attending(zeros), by_hand(in, open, true)) == "");
      }
    }
  }
  const FullTensors in = operands({1, 6, 2, 2}, {1, 3, 1, 2});
  CHECK(wrong_gradients(in, attending({.window = 2})) == "");
  CHECK(wrong_gradients(in, attending({.causal = true, .window = 2})) == "");
}

TEST_CASE("many steps, computed block by block, equal a mask, on sharded and replicated steps") {
  struct Case {
    int64_t t, s, heads, shared;
    ops::SdpaOptions options;
  };
  const Mesh mesh = create_mesh({{"steps", 3}}, virtual_cpus(3));
  for (const Case& c : std::vector<Case>{{700, 700, 2, 2, {.causal = true}},
                                         {300, 500, 4, 2, {.causal = true}},
                                         {500, 300, 2, 1, {.causal = true}},
                                         {700, 700, 2, 2, {.window = 7}},
                                         {700, 600, 2, 2, {.causal = true, .window = 40}},
                                         {700, 300, 2, 2, {.window = 300}},
                                         {900, 300, 2, 2, {.zeros = true, .window = 50}}}) {
    CAPTURE(&c.options, c.t, c.s, c.options.causal);
    const FullTensors in = operands({1, c.t, c.heads, 3}, {1, c.s, c.shared, 3});
    const DTensor mask =
        pack(open_steps(c.t, c.s, c.options), Layout::replicated(default_mesh(), 2));
    const FullTensors expected = results(replicated(in), {.zeros = c.options.zeros}, mask);
    CHECK(wrong_results(results(replicated(in), c.options), expected) == "");
    const Inputs apart = cut(in, mesh, {steps_axis, unsharded_axis, unsharded_axis});
    CHECK(wrong_results(results(apart, c.options), expected) == "");
    // Gradients of key and value are summed over the steps.
    CHECK(received(apart, c.options).first == 0);
  }
}

TEST_CASE("lengths and masks of extent 1 equal a mask of all steps") {
  const FullTensors in = operands({3, 70, 2, 3}, {3, 90, 2, 3});
  const at::Tensor counts = at::tensor(std::vector<int64_t>{90, 40, 0});
  const at::Tensor by_length = at::arange(90).lt(counts.view({3, 1, 1, 1}));
  const at::Tensor rows = at::rand({3, 1, 70, 1}).gt(0.3), keys = at::rand({3, 2, 1, 90}).gt(0.8);
  const auto on_mesh = [](const at::Tensor& x) {
    return pack(x, Layout::replicated(default_mesh(), x.dim()));
  };
  for (const bool causal : {false, true}) {
    for (const std::optional<int64_t> window : {std::optional<int64_t>(), {20}}) {
      for (const bool zeros : {false, true}) {
        CAPTURE(causal, window.has_value(), zeros);
        const ops::SdpaOptions options{.causal = causal,
                                       .zeros = zeros,
                                       .window = window,
                                       .masks = {on_mesh(rows), on_mesh(keys)},
                                       .lengths = on_mesh(counts.to(at::kInt))};
        const at::Tensor open =
            open_steps(70, 90, options).logical_and(rows).logical_and(keys).logical_and(by_length);
        const FullTensors expected = results(replicated(in), {.zeros = zeros}, on_mesh(open));
        CHECK(difference(expected[0], by_hand(in, open, zeros), 1e-10, 1e-10) == "");
        CHECK(wrong_results(results(replicated(in), options), expected) == "");
      }
    }
  }
}

TEST_CASE("attention of 8192 steps needs under 3 % of the scores' memory beside its results") {
  constexpr int64_t t = 8192, d = 64;
  const FullTensors tensors = operands({1, t, 1, d}, {1, t, 1, d}, at::kFloat);
  const Inputs in = replicated(tensors);
  const DTensor counts =
      pack(at::tensor(std::vector<int64_t>{5000}), Layout::replicated(default_mesh(), 1));
  const Mesh mesh = create_mesh({{"steps", 2}}, virtual_cpus(2));
  const Inputs apart = cut(tensors, mesh, {steps_axis, unsharded_axis, unsharded_axis});
  const auto share = [&](const Inputs& values, const ops::SdpaOptions& options) {
    const DeviceMemory memory;
    GradientTape tape;
    for (const DTensor& value : values) tape.watch(value);
    const DTensor y = ops::attention(values[0], values[1], values[2], {}, options);
    const double forward = double(memory.peak(0));
    const auto gradients = tape.gradient(y, values, {.output_gradient = y});
    // The result and each gradient take the same number of bytes.
    const double backward = double(memory.peak(0)) - 4 * double(t * d * 4);
    return std::max(forward, backward) / double(t * t * 4);
  };
  CHECK(share(in, {.causal = true}) < 0.03);
  CHECK(share(in, {.window = 256}) < 0.03);
  CHECK(share(in, {.causal = true, .window = 1000}) < 0.03);
  CHECK(share(in, {.causal = true, .lengths = counts}) < 0.03);
  CHECK(share(apart, {.causal = true}) < 0.03);
}

TEST_CASE("attention refuses invalid heads, windows and lengths in one line") {
  const auto call = [](const Shape& k, const ops::SdpaOptions& options = {}) {
    return error_line([&] { ops::attention(ones({2, 3, 6, 5}), ones(k), ones(k), {}, options); });
  };
  CHECK_THAT(call({2, 4, 4, 5}), Contains("[attention]") && Contains("a divisor"));
  CHECK_THAT(call({2, 4, 12, 5}), Contains("(2, 4, 12, 5)"));
  CHECK_THAT(call({2, 4, 0, 5}), Contains("(2, 4, 0, 5)"));
  CHECK_THAT(call({2, 4, 3, 5}, {.window = 0}),
             Contains("window must be at least 1") && Contains("0"));
  CHECK_THAT(call({2, 4, 3, 5}, {.lengths = ones({3}, at::kLong)}), Contains("(3,)"));
  CHECK_THAT(call({2, 4, 3, 5}, {.masks = {ones({2, 1, 3, 4}, at::kDouble)}}),
             Contains("a mask is bool"));
}

}  // namespace attention_forms_test
