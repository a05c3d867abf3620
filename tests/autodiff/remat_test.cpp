#include <tessera/framework/autodiff/remat.hpp>

#include <map>
#include <optional>

#include <ATen/ATen.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/ops/ops.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/op_names.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace remat_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Contains;

namespace {

using Function = std::function<DTensor(const DTensor&)>;

at::Tensor numbers(Shape shape, uint64_t seed) {
  return random_values({std::move(shape), at::kDouble, -1, 1}, seed);
}

DTensor input(int64_t devices = 1, int64_t rows = 8) {
  return pack(numbers({rows, 6}, 1), Layout::batch_sharded(virtual_mesh({devices}), "x", 2));
}

DTensor kernel(const Mesh& mesh, uint64_t seed = 2) {
  return pack(numbers({6, 6}, seed), Layout::replicated(mesh, 2));
}

/// A gradient, and the operations that ran in the backward pass.
struct Result {
  at::Tensor gradient;
  std::vector<std::string> ran;
};

Result differentiated(const DTensor& x, const Function& f) {
  GradientTape tape;
  tape.watch(x);
  const DTensor loss = ops::sum(f(x));
  std::optional<OpNames> names(std::in_place);
  const DTensor gradient = tape.gradient(loss, x);
  const std::vector<std::string> ran = names->all();
  names.reset();
  return {gradient.full(), ran};
}

/// Returns the operations of `some` that are not in `others`, each as often as it is missing.
std::vector<std::string> without(std::vector<std::string> some,
                                 const std::vector<std::string>& others) {
  for (const std::string& name : others) {
    const auto found = std::find(some.begin(), some.end(), name);
    if (found != some.end()) some.erase(found);
  }
  return some;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("remat computes what gradients read again, each operation once", "[remat]") {
  for (int64_t devices : {1, 2}) {
    const DTensor x = input(devices);
    const DTensor w = kernel(x.mesh());
    const Function block = [&](const DTensor& in) {
      const DTensor h = ops::einsum("bi,ij->bj", {in, w});
      return ops::softmax(ops::tanh(h)) * ops::exp(h);
    };
    const Result saved = differentiated(x, block);
    const Result again = differentiated(x, remat(block));
    CHECK(at::equal(saved.gradient, again.gradient));
    Names ran = without(again.ran, saved.ran);
    std::sort(ran.begin(), ran.end());
    // The product of both is not read by a gradient.
    CHECK(ran == Names{"einsum", "exp", "softmax", "tanh"});
    const Result products = differentiated(x, remat(block, {.save = {"matmuls"}}));
    CHECK(at::equal(saved.gradient, products.gradient));
    ran = without(products.ran, saved.ran);
    std::sort(ran.begin(), ran.end());
    CHECK(ran == Names{"exp", "softmax", "tanh"});
    const Result named = differentiated(x, remat(block, {.save = {"tanh", "exp"}}));
    CHECK(at::equal(saved.gradient, named.gradient));
    CHECK(without(named.ran, saved.ran) == Names{"softmax"});
  }
}

TEST_CASE("remat runs nothing that no gradient reads", "[remat]") {
  const DTensor x = input();
  const Function sums = [](const DTensor& in) { return ops::exp(in) * 0.0 + in * 2.0; };
  const Function unread = [](const DTensor& in) {
    const DTensor seen = ops::tanh(in * 3.0);
    return seen.defined() ? in + 1.0 : seen;
  };
  CHECK(without(differentiated(x, remat(unread)).ran, differentiated(x, unread).ran).empty());
  CHECK(without(differentiated(x, remat(sums)).ran, differentiated(x, sums).ran) == Names{"exp"});
}

TEST_CASE("a chain of rematerialized functions saves what passes between them", "[remat]") {
  const DTensor x = input();
  const Function block = [](const DTensor& in) { return ops::exp(ops::tanh(in) * 0.5); };
  const Function chain = [&](const DTensor& in) { return block(block(block(in))); };
  const auto part = remat(block);
  const Function parts = [&](const DTensor& in) mutable {
    auto one = part;
    return one(one(one(in)));
  };
  const Result saved = differentiated(x, chain), again = differentiated(x, parts);
  CHECK(at::equal(saved.gradient, again.gradient));
  // All of the last function, whose result exp saves. The results of the first two are saved, since
  // the next one reads them.
  Names ran = without(again.ran, saved.ran);
  std::sort(ran.begin(), ran.end());
  CHECK(ran == Names{"exp", "scale", "tanh", "tanh", "tanh"});
  // Nested parts are one.
  const Result nested = differentiated(x, remat(parts));
  CHECK(at::equal(saved.gradient, nested.gradient));
}

TEST_CASE("rematerialized values are not alive between the passes", "[remat]") {
  const BlockPolicyScope policy(BlockPolicy::per_device);
  constexpr int parts = 16, inner = 10;
  const DTensor x = input(1, 4096);
  const auto bytes = static_cast<int64_t>(4096 * 6 * 8);
  const Function block = [](const DTensor& in) {
    DTensor y = in;
    for (int i = 0; i < inner; ++i) y = ops::tanh(y);
    return y;
  };
  // Returns the peaks of the forward and of both passes, in values.
  const auto peaks = [&](const Function& f) {
    const DeviceMemory memory;
    GradientTape tape;
    tape.watch(x);
    DTensor y = x;
    for (int i = 0; i < parts; ++i) y = f(y);
    const DTensor loss = ops::sum(y);
    y = DTensor();
    const int64_t forward = memory.peak(0) / bytes;
    tape.gradient(loss, x);
    return std::pair(forward, memory.peak(0) / bytes);
  };
  const auto saved = peaks(block);
  CHECK(saved.first >= parts * inner);
  const auto again = peaks(remat(block));
  // The values between the parts, and one or two of the part that is running.
  CHECK(again.first <= parts + 2);
  // One part at a time is computed again.
  CHECK(again.second <= parts + inner + 4);
}

TEST_CASE("remat: persistent tapes, second derivatives, constants", "[remat]") {
  const DTensor x = input();
  const Function f = [](const DTensor& in) { return ops::exp(ops::tanh(in)) * in; };
  const auto twice = [&](const Function& g) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const DTensor loss = ops::sum(g(x));
    const at::Tensor first = tape.gradient(loss, x).full();
    CHECK(at::equal(tape.gradient(loss, x).full(), first));
    return first;
  };
  CHECK(at::equal(twice(f), twice(remat(f))));
  const auto second = [&](const Function& g) {
    GradientTape outer;
    outer.watch(x);
    DTensor first;
    {
      GradientTape inner;
      inner.watch(x);
      first = inner.gradient(ops::sum(g(x)), x);
    }
    return outer.gradient(ops::sum(first), x).full();
  };
  CHECK(difference(second(f), second(remat(f)), 1e-12) == "");
}

TEST_CASE("remat saves results of collectives, or communicates again", "[remat]") {
  const DTensor x = input(2);
  const Layout features({unsharded, "x"}, x.mesh()), rows({"x", unsharded}, x.mesh());
  const DTensor w = pack(numbers({6, 6}, 3), rows);
  const DTensor in = pack(x.full(), features);
  const Function block = [&](const DTensor& value) {
    const DTensor partial = ops::einsum("bi,ij->bj", {value, w});
    return ops::tanh(ops::relayout(ops::tanh(partial), features));
  };
  const auto run = [&](const Function& f) {
    CommLog log;
    const CommLogScope logged(log);
    GradientTape tape;
    tape.watch(in);
    const at::Tensor gradient = tape.gradient(ops::sum(f(in)), in).full();
    return std::pair(gradient, log.count(CommOp::all_reduce));
  };
  const auto saved = run(block), kept = run(remat(block));
  const auto again = run(remat(block, {.collectives = true}));
  CHECK(at::equal(saved.first, kept.first));
  CHECK(at::equal(saved.first, again.first));
  CHECK(kept.second == saved.second);
  CHECK(again.second == saved.second + 1);
}

TEST_CASE("remat refuses a policy with an unknown operation", "[remat]") {
  const auto f = [](const DTensor& x) { return x; };
  CHECK_THROWS_WITH(remat(f, {.save = {"einsun"}}),
                    Contains("\"einsun\"") && Contains("\"einsum\""));
}

}  // namespace remat_test
