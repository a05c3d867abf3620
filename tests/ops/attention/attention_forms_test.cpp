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

/// Heads that are shared, windows, lengths and causal steps that are cut.
namespace attention_forms_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

namespace {

using Inputs = std::vector<DTensor>;
using Wholes = std::vector<at::Tensor>;

/// Query, key and value.
Wholes operands(const Shape& q, const Shape& k, at::ScalarType dtype = at::kDouble) {
  return {at::randn(q).to(dtype), at::randn(k).to(dtype), at::randn(k).to(dtype)};
}

/// What steps may attend to by their places.
at::Tensor open_steps(int64_t t, int64_t s, const ops::SdpaOptions& form) {
  const at::Tensor ahead = at::arange(t).unsqueeze(-1) - at::arange(s);
  at::Tensor open = at::ones({t, s}, at::kBool);
  if (form.causal) open = open.logical_and(ahead.ge(0));
  if (form.window) open = open.logical_and(ahead.abs().lt(*form.window));
  return open;
}

/// As it is written in textbooks; a step that may attend to nothing gives the mean, or zeros.
at::Tensor by_hand(const Wholes& in, const at::Tensor& open, bool zeros = false) {
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

Function attending(const ops::SdpaOptions& form) {
  return [form](const Inputs& x) { return ops::attention(x[0], x[1], x[2], {}, form); };
}

/// The result and the gradients of the sum of its squares.
Wholes results(const Inputs& in, const ops::SdpaOptions& form, const DTensor& mask = {}) {
  GradientTape tape;
  for (const DTensor& value : in) tape.watch(value);
  const DTensor y = ops::attention(in[0], in[1], in[2], mask, form);
  Wholes list = {y.full().clone()};
  for (const DTensor& gradient : tape.gradient(ops::sum(y * y), in)) {
    list.push_back(gradient.full().clone());
  }
  return list;
}

/// Each on `mesh`, cut along an axis of its own over the only dimension; -1: not cut.
Inputs cut(const Wholes& in, const Mesh& mesh, const std::vector<int>& axes) {
  Inputs values;
  for (size_t i = 0; i < in.size(); ++i) {
    LayoutSpec spec(4, unsharded);
    if (axes[i] >= 0) spec[size_t(axes[i])] = mesh.dim_names()[0];
    values.push_back(pack(in[i], Layout(spec, mesh)));
  }
  return values;
}

Inputs replicated(const Wholes& in) {
  Inputs values;
  for (const at::Tensor& x : in) {
    values.push_back(pack(x, Layout::replicated(default_mesh(), x.dim())));
  }
  return values;
}

std::string wrong_results(const Wholes& found, const Wholes& expected, double tolerance = 1e-10) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string wrong = difference(found[i], expected[i], tolerance, tolerance);
    if (!wrong.empty()) return str(i ? str("gradient ", i - 1) : "result", ": ", wrong);
  }
  return "";
}

/// What each device receives, forward and backward.
std::pair<double, double> received(const Inputs& in, const ops::SdpaOptions& form) {
  GradientTape tape;
  for (const DTensor& value : in) tape.watch(value);
  CommLog forward, backward;
  DTensor y;
  {
    const CommLogScope scope(forward);
    y = ops::attention(in[0], in[1], in[2], {}, form);
  }
  const CommLogScope scope(backward);
  tape.gradient(y, in, {.output_gradient = y});
  return {forward.received(), backward.received()};
}

constexpr int heads_axis = 2, steps_axis = 1, whole = -1;

}  // namespace

TEST_CASE("heads that share those of key and value are those of repeated ones, in every layout") {
  for (const int64_t shared : {1, 2, 3}) {
    CAPTURE(shared);
    const Wholes in = operands({2, 3, 6, 2}, {2, 4, shared, 2});
    CHECK(wrong_values(in, attending({}), by_hand(in, open_steps(3, 4, {}))) == "");
    CHECK(wrong_gradients(in, attending({.causal = true})) == "");
  }
}

TEST_CASE("six heads share two on 3, 4 and 5 devices, wherever these lie") {
  const Wholes in = operands({2, 3, 6, 2}, {2, 4, 2, 2});
  const Wholes expected = results(replicated(in), {});
  for (const int64_t devices : {2, 3, 4, 5, 7}) {
    const Mesh mesh = create_mesh({{"model", devices}}, virtual_cpus(devices));
    for (const std::vector<int>& axes : {std::vector{heads_axis, heads_axis, heads_axis},
                                         {heads_axis, whole, whole},
                                         {whole, heads_axis, heads_axis},
                                         {heads_axis, heads_axis, whole}}) {
      CAPTURE(devices, axes);
      CHECK(wrong_results(results(cut(in, mesh, axes), {}), expected) == "");
    }
  }
}

TEST_CASE("shared heads that are cut as the query's cost nothing, and else what is not at hand") {
  const Wholes in = operands({2, 3, 6, 2}, {2, 4, 2, 2});
  const auto cost = [&](int64_t devices) {
    const Mesh mesh = create_mesh({{"model", devices}}, virtual_cpus(devices));
    return received(cut(in, mesh, {heads_axis, heads_axis, heads_axis}), {});
  };
  CHECK(cost(2) == std::pair(0.0, 0.0));
  // Of the devices, whose heads are 2 and 2 and 2, the first has no shared head and the second one
  // of two: they get one of key and of value, 2 rows of 4 steps of 2 features of 8 bytes.
  constexpr double head = 2 * 4 * 2 * 8;
  CHECK(cost(3).first == 2 * head);
  // The gradients of a shared head are of three of the query's, of which one or two are elsewhere.
  CHECK(cost(3).second <= 2 * head + 2 * 2 * head);
}

TEST_CASE("groups of heads in half types, with masks, are those of repeated heads") {
  const Wholes exact = operands({2, 70, 6, 8}, {2, 90, 2, 8});
  const at::Tensor mask = at::rand({2, 6, 1, 90}).gt(0.4);
  const DTensor keys = pack(mask, Layout::replicated(default_mesh(), 4));
  const at::Tensor y = by_hand(exact, mask.logical_and(open_steps(70, 90, {.causal = true})));
  for (const auto& [dtype, tolerance] : {std::pair{at::kDouble, 1e-12},
                                         {at::kFloat, 1e-5},
                                         {at::kBFloat16, 4e-2},
                                         {at::kHalf, 5e-3}}) {
    Wholes in;
    for (const at::Tensor& x : exact) in.push_back(x.to(dtype));
    const Inputs values = replicated(in);
    const DTensor found = ops::attention(values[0], values[1], values[2], keys, {.causal = true});
    CHECK(difference(found.full().to(at::kDouble), y, tolerance, tolerance) == "");
  }
}

TEST_CASE("windows, causal or not, are those of a mask, in every layout") {
  for (const auto& [t, s] : {std::pair<int64_t, int64_t>{4, 4}, {3, 5}, {6, 3}}) {
    for (const int64_t window : {1, 2, 3, 9}) {
      for (const bool causal : {false, true}) {
        CAPTURE(t, s, window, causal);
        const ops::SdpaOptions form{.causal = causal, .window = window};
        const Wholes in = operands({2, t, 2, 2}, {2, s, 2, 2});
        const at::Tensor open = open_steps(t, s, form);
        CHECK(wrong_values(in, attending(form), by_hand(in, open)) == "");
        ops::SdpaOptions zeros = form;
        zeros.zeros = true;
        CHECK(wrong_values(in, attending(zeros), by_hand(in, open, true)) == "");
      }
    }
  }
  const Wholes in = operands({1, 6, 2, 2}, {1, 3, 1, 2});
  CHECK(wrong_gradients(in, attending({.window = 2})) == "");
  CHECK(wrong_gradients(in, attending({.causal = true, .window = 2})) == "");
}

TEST_CASE("many steps, some at a time, are those of a mask, on steps that are cut and whole") {
  struct Case {
    int64_t t, s, heads, shared;
    ops::SdpaOptions form;
  };
  const Mesh mesh = create_mesh({{"steps", 3}}, virtual_cpus(3));
  for (const Case& c : std::vector<Case>{{700, 700, 2, 2, {.causal = true}},
                                         {300, 500, 4, 2, {.causal = true}},
                                         {500, 300, 2, 1, {.causal = true}},
                                         {700, 700, 2, 2, {.window = 7}},
                                         {700, 600, 2, 2, {.causal = true, .window = 40}},
                                         {700, 300, 2, 2, {.window = 300}},
                                         {900, 300, 2, 2, {.zeros = true, .window = 50}}}) {
    CAPTURE(&c.form, c.t, c.s, c.form.causal);
    const Wholes in = operands({1, c.t, c.heads, 3}, {1, c.s, c.shared, 3});
    const DTensor mask = pack(open_steps(c.t, c.s, c.form), Layout::replicated(default_mesh(), 2));
    const Wholes expected = results(replicated(in), {.zeros = c.form.zeros}, mask);
    CHECK(wrong_results(results(replicated(in), c.form), expected) == "");
    const Inputs apart = cut(in, mesh, {steps_axis, whole, whole});
    CHECK(wrong_results(results(apart, c.form), expected) == "");
    // Gradients of key and value are summed over the steps.
    CHECK(received(apart, c.form).first == 0);
  }
}

TEST_CASE("lengths and masks of extent 1 are those of a mask of all steps") {
  const Wholes in = operands({3, 70, 2, 3}, {3, 90, 2, 3});
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
        const ops::SdpaOptions form{.causal = causal,
                                    .zeros = zeros,
                                    .window = window,
                                    .masks = {on_mesh(rows), on_mesh(keys)},
                                    .lengths = on_mesh(counts.to(at::kInt))};
        const at::Tensor open =
            open_steps(70, 90, form).logical_and(rows).logical_and(keys).logical_and(by_length);
        const Wholes expected = results(replicated(in), {.zeros = zeros}, on_mesh(open));
        CHECK(difference(expected[0], by_hand(in, open, zeros), 1e-10, 1e-10) == "");
        CHECK(wrong_results(results(replicated(in), form), expected) == "");
      }
    }
  }
}

TEST_CASE("attention of 8192 steps holds under 3 % of their scores beside its results") {
  constexpr int64_t t = 8192, d = 64;
  const Wholes wholes = operands({1, t, 1, d}, {1, t, 1, d}, at::kFloat);
  const Inputs in = replicated(wholes);
  const DTensor counts =
      pack(at::tensor(std::vector<int64_t>{5000}), Layout::replicated(default_mesh(), 1));
  const Mesh mesh = create_mesh({{"steps", 2}}, virtual_cpus(2));
  const Inputs apart = cut(wholes, mesh, {steps_axis, whole, whole});
  const auto share = [&](const Inputs& values, const ops::SdpaOptions& form) {
    const DeviceMemory memory;
    GradientTape tape;
    for (const DTensor& value : values) tape.watch(value);
    const DTensor y = ops::attention(values[0], values[1], values[2], {}, form);
    const double forward = double(memory.peak(0));
    const auto gradients = tape.gradient(y, values, {.output_gradient = y});
    // The result and the gradients are of as many bytes each.
    const double backward = double(memory.peak(0)) - 4 * double(t * d * 4);
    return std::max(forward, backward) / double(t * t * 4);
  };
  CHECK(share(in, {.causal = true}) < 0.03);
  CHECK(share(in, {.window = 256}) < 0.03);
  CHECK(share(in, {.causal = true, .window = 1000}) < 0.03);
  CHECK(share(in, {.causal = true, .lengths = counts}) < 0.03);
  CHECK(share(apart, {.causal = true}) < 0.03);
}

TEST_CASE("attention refuses heads, windows and lengths that do not fit, in one line") {
  const auto call = [](const Shape& k, const ops::SdpaOptions& form = {}) {
    return error_line([&] { ops::attention(ones({2, 3, 6, 5}), ones(k), ones(k), {}, form); });
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
