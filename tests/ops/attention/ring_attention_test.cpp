#include <tessera/framework/ops/attention/attention.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/thread_communicator.hpp"

/// Ring attention: keys and values rotate between devices.
namespace ring_attention_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

using Inputs = std::vector<DTensor>;
using FullTensors = std::vector<at::Tensor>;

struct Case {
  Shape query, key;
  ops::SdpaOptions options = {};
  FullTensors masks = {};
  at::Tensor lengths = {};
};

FullTensors operands(const Case& c, at::ScalarType dtype = at::kDouble) {
  at::manual_seed(7);
  return {at::randn(c.query, at::kDouble).to(dtype), at::randn(c.key, at::kDouble).to(dtype),
          at::randn(c.key, at::kDouble).to(dtype)};
}

/// The result and the gradients of the sum of its squares, with the communication of each pass.
struct Results {
  FullTensors values;
  CommLog forward, backward;
};

Results results(const Case& c, const FullTensors& in, const Layout& layout) {
  const Mesh& mesh = layout.mesh();
  Inputs values;
  for (const at::Tensor& x : in) values.push_back(pack(x, layout));
  ops::SdpaOptions options = c.options;
  const auto replicate = [&](const at::Tensor& x) {
    return pack(x, Layout::replicated(mesh, x.dim()));
  };
  for (const at::Tensor& mask : c.masks) options.masks.push_back(replicate(mask));
  if (c.lengths.defined()) options.lengths = replicate(c.lengths);
  GradientTape tape;
  for (const DTensor& value : values) tape.watch(value);
  Results actual;
  DTensor y, gradient;
  {
    const CommLogScope scope(actual.forward);
    y = ops::attention(values[0], values[1], values[2], {}, options);
  }
  gradient = y * 2;
  Inputs gradients;
  {
    const CommLogScope scope(actual.backward);
    gradients = tape.gradient(y, values, {.output_gradient = gradient});
  }
  actual.values = {y.full().clone()};
  for (const DTensor& each : gradients) actual.values.push_back(each.full().clone());
  return actual;
}

Results on_one_device(const Case& c, const FullTensors& in) {
  return results(c, in, Layout::replicated(create_mesh({{"one", 1}}, virtual_cpus(1)), 4));
}

Layout cut_steps(const Mesh& mesh) {
  return Layout({unsharded, "steps", unsharded, unsharded}, mesh);
}

Mesh ring_of(int64_t devices) { return create_mesh({{"steps", devices}}, virtual_cpus(devices)); }

std::string wrong_results(const FullTensors& actual, const FullTensors& expected,
                          double tolerance = 1e-12) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string wrong =
        difference(actual[i].to(at::kDouble), expected[i].to(at::kDouble), tolerance, tolerance);
    if (!wrong.empty()) return str(i ? str("gradient ", i - 1) : "result", ": ", wrong);
  }
  return "";
}

std::vector<Case> cases(int64_t t) {
  at::manual_seed(3);
  const Shape q = {2, t, 4, 3}, k = {2, t, 2, 3};
  const at::Tensor keys = at::rand({2, 1, 1, t}).gt(0.6), rows = at::rand({2, 4, t, 1}).gt(0.3),
                   pairs = at::rand({1, 1, t, t}).gt(0.5),
                   lengths = at::tensor(std::vector<int64_t>{t / 2, 0});
  return {{q, q},
          {q, k, {.scale = 0.4}},
          {q, q, {.causal = true}},
          {q, k, {.causal = true}},
          {q, k, {.causal = true, .zigzag = false}},
          {q, q, {.zigzag = true}},
          {q, k, {.causal = true, .window = 2}},
          {q, q, {.causal = true, .window = 9, .zigzag = true}},
          {q, q, {.window = 5}},
          {q, q, {}, {pairs}},
          {q, k, {.causal = true}, {rows, keys}},
          {q, k, {.causal = true, .zeros = true, .zigzag = false}, {rows, pairs}},
          {q, k, {.causal = true}, {pairs, keys}, lengths},
          {q, q, {.zeros = true}, {}, lengths},
          {q, q, {.window = 4}, {keys}, lengths}};
}

/// Returns the number of collective_permute calls in a log.
int64_t permutes(const CommLog& log) {
  REQUIRE(log.count(CommOp::collective_permute) == std::ssize(log.entries()));
  return log.count(CommOp::collective_permute, "steps");
}

}  // namespace

TEST_CASE("ring attention equals that of one device, on any number of devices") {
  for (const int64_t t : {40, 13, 3}) {
    for (const Case& c : cases(t)) {
      const FullTensors in = operands(c);
      const Results single = on_one_device(c, in);
      for (const int64_t devices : {2, 3, 5, 8}) {
        for (const BlockPolicy policy : {BlockPolicy::per_device, BlockPolicy::per_worker}) {
          const BlockPolicyScope scope(policy);
          CAPTURE(t, devices, c.options.causal, c.options.window.value_or(0), c.masks.size(),
                  c.options.zigzag.value_or(c.options.causal), c.key);
          const Results actual = results(c, in, cut_steps(ring_of(devices)));
          CHECK(wrong_results(actual.values, single.values) == "");
        }
      }
    }
  }
}

TEST_CASE("a ring works where other dimensions shard batch and heads, shared heads included") {
  const Mesh mesh = create_mesh({{"batch", 2}, {"model", 4}, {"steps", 3}}, virtual_cpus(24));
  const Layout layout({"batch", "steps", "model", unsharded}, mesh);
  for (const Shape& key : {Shape{3, 10, 6, 2}, Shape{3, 10, 2, 2}, Shape{3, 10, 3, 2}}) {
    for (const bool causal : {false, true}) {
      const Case c{{3, 10, 6, 2}, key, {.causal = causal}};
      const FullTensors in = operands(c);
      CAPTURE(key, causal);
      CHECK(wrong_results(results(c, in, layout).values, on_one_device(c, in).values) == "");
    }
  }
}

TEST_CASE("a ring works over two dimensions, and with sharded values' features") {
  const Mesh mesh = create_mesh({{"a", 2}, {"b", 3}, {"width", 2}}, virtual_cpus(12));
  const Layout layout({unsharded, {"a", "b"}, unsharded, unsharded}, mesh);
  const Case c{{2, 20, 2, 4}, {2, 20, 2, 4}, {.causal = true}};
  const FullTensors in = operands(c);
  const Results single = on_one_device(c, in);
  CHECK(wrong_results(results(c, in, layout).values, single.values) == "");
  const DTensor y = ops::attention(
      pack(in[0], layout), pack(in[1], layout),
      pack(in[2], Layout({unsharded, {"a", "b"}, unsharded, "width"}, mesh)), {}, c.options);
  CHECK(difference(y.full(), single.values[0], 1e-12, 1e-12) == "");
  CHECK(y.layout().axis(3).size() == 1);
}

TEST_CASE("a ring in float16 and bfloat16 accumulates in float32") {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const Case c{{1, 96, 4, 16}, {1, 96, 2, 16}, {.causal = true}};
    const FullTensors in = operands(c, dtype);
    FullTensors exact;
    for (const at::Tensor& x : in) exact.push_back(x.to(at::kDouble));
    const Results single = on_one_device(c, exact);
    const Results actual = results(c, in, cut_steps(ring_of(6)));
    const double tolerance = dtype == at::kFloat ? 1e-5 : dtype == at::kHalf ? 1e-2 : 8e-2;
    CAPTURE(dtype);
    CHECK(actual.values[0].scalar_type() == dtype);
    CHECK(wrong_results(actual.values, single.values, tolerance) == "");
  }
}

TEST_CASE("keys and values rotate k-1 times, their gradients k times in the backward pass") {
  const auto of = [](int64_t devices, const ops::SdpaOptions& options, const Shape& key) {
    const Case c{{2, 48, 4, 3}, key, options};
    return results(c, operands(c), cut_steps(ring_of(devices)));
  };
  const Shape all = {2, 48, 4, 3}, shared = {2, 48, 2, 3};
  for (const int64_t k : {2, 3, 4, 8}) {
    for (const Shape& key : {all, shared}) {
      CAPTURE(k, key);
      const double part = double(numel(key)) / double(k) * 8;  // bytes of keys, and of values
      const double query = double(numel(all)) / double(k) * 8;
      const double sums = query / 3;
      const Results plain = of(k, {}, key);
      CHECK(permutes(plain.forward) == k - 1);
      CHECK(plain.forward.received() == double(k - 1) * 2 * part);
      CHECK(permutes(plain.backward) == k - 1 + k);
      CHECK(plain.backward.received() == double(2 * k - 1) * 2 * part);
      const Results naive = of(k, {.causal = true, .zigzag = false}, key);
      CHECK(naive.forward.received() == plain.forward.received());
      CHECK(naive.backward.received() == plain.backward.received());
      // In addition, half of the inputs and of the outputs.
      const Results zigzag = of(k, {.causal = true}, key);
      CHECK(permutes(zigzag.forward) == k - 1 + 2);
      CHECK(zigzag.forward.received() - plain.forward.received() ==
            (2 * query + 2 * part + sums) / 2);
      CHECK(permutes(zigzag.backward) == 2 * k - 1 + 2);
      CHECK(zigzag.backward.received() - plain.backward.received() ==
            (3 * query + 2 * part + sums) / 2 + (query + 2 * part) / 2);
    }
  }
  // With a window the rotation stops early: here shards of 6 steps, each attending to 8 steps
  // before.
  const Results window = of(8, {.causal = true, .window = 9}, all);
  CHECK(permutes(window.forward) == 2);
  CHECK(permutes(window.backward) == 2 + 3);
}

TEST_CASE("a ring's communication does not depend on how blocks merge") {
  for (const Case& c : cases(13)) {
    const FullTensors in = operands(c);
    std::string expected;
    for (const BlockPolicy policy :
         {BlockPolicy::per_device, BlockPolicy::per_shard, BlockPolicy::per_worker}) {
      const BlockPolicyScope scope(policy);
      const Results actual = results(c, in, cut_steps(ring_of(4)));
      const std::string text = actual.forward.to_string() + actual.backward.to_string();
      if (expected.empty()) expected = text;
      CHECK(text == expected);
    }
  }
}

TEST_CASE("keys that are replicated or of another extent use no ring") {
  const Mesh mesh = ring_of(4);
  const Case c{{1, 8, 2, 2}, {1, 8, 2, 2}};
  const FullTensors in = operands(c);
  const DTensor query = pack(in[0], cut_steps(mesh));
  CommLog log;
  const CommLogScope scope(log);
  const Layout replicated = Layout::replicated(mesh, 4);
  ops::attention(query, pack(in[1], replicated), pack(in[2], replicated));
  CHECK(log.entries().empty());
  const at::Tensor more = at::randn({1, 12, 2, 2}, at::kDouble);
  ops::attention(query, pack(more, cut_steps(mesh)), pack(more, cut_steps(mesh)));
  CHECK(log.count(CommOp::all_gather) == 2);
  CHECK(log.count(CommOp::collective_permute) == 0);
}

TEST_CASE("ring attention over processes communicates and logs the same as in one process") {
  for (const int ranks : {2, 4}) {
    for (const Case& c : cases(13)) {
      const FullTensors in = operands(c);
      const Results single = on_one_device(c, in);
      for (const MeshDims& dims :
           {MeshDims{{"batch", 1}, {"steps", 8}}, MeshDims{{"batch", 2}, {"steps", 4}},
            MeshDims{{"batch", 2}, {"steps", 2}}}) {
        const auto on = [&](const Mesh& mesh) {
          return results(c, in, Layout({"batch", "steps", unsharded, unsharded}, mesh));
        };
        const Results here = on(create_mesh(dims));
        CAPTURE(ranks, to_string(dims), c.masks.size(), c.options.causal);
        CHECK_NOTHROW(run_ranks(ranks, [&](int, const std::shared_ptr<Communicator>& inner) {
          const Results actual = on(rank_mesh(dims, inner));
          const std::string wrong = wrong_results(actual.values, single.values);
          expect(wrong.empty(), wrong);
          expect(actual.forward.to_string() == here.forward.to_string(), "another log");
          expect(actual.backward.to_string() == here.backward.to_string(), "another log");
        }));
      }
    }
  }
}

}  // namespace ring_attention_test
