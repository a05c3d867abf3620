#include <tessera/framework/ops/engine/propagate.hpp>
#include <tessera/framework/ops/engine/rule.hpp>

#include "tests/support/catch.hpp"

namespace propagate_test {

using namespace tessera;
using namespace tessera::detail;

namespace {

const Mesh& mesh() {
  static const Mesh grid = create_mesh({{"batch", 2}, {"model", 2}, {"spare", 2}});
  return grid;
}

/// Returns the plan for 8 by 8 inputs, or of another extent; bit i of `parameters` marks input i as
/// a Variable's value.
std::string plan(const Rule& rule, const std::vector<LayoutSpec>& specs, uint32_t parameters = 0,
                 int64_t extent = 8) {
  std::vector<Layout> layouts;
  Specs in, out;
  for (const LayoutSpec& spec : specs) {
    layouts.emplace_back(spec, mesh());
    in.push_back({Shape(spec.size(), extent), at::kFloat});
  }
  for (const std::vector<int>& axes : rule.out) {
    out.push_back({Shape(axes.size(), extent), at::kFloat});
  }
  std::string text = to_string(propagate(rule, in, out, layouts, parameters));
  for (size_t at; (at = text.find(unsharded)) != std::string::npos;) {
    text.erase(at, 8);
    text[at] = '-';
  }
  return text;
}

std::string plan(const std::string& rule, const std::vector<LayoutSpec>& specs,
                 uint32_t parameters = 0) {
  return plan(Rule::parse(rule), specs, parameters);
}

const std::string product = "m k, k n -> m n";
const AxisSpec no = nullptr;

}  // namespace

TEST_CASE("a rule names factors, their kinds and where they are reduced") {
  const Rule rule = Rule::parse("b ~h !c ., k -> b ~h k");
  CHECK(rule.in == std::vector<std::vector<int>>{{0, 1, 2, Rule::none}, {3}});
  CHECK(rule.out == std::vector<std::vector<int>>{{0, 1, 3}});
  CHECK(rule.factors == std::vector<FactorKind>{FactorKind::pass, FactorKind::window,
                                                FactorKind::replicated, FactorKind::pass});
  CHECK(Rule::parse("m k, k n -> m n").factors[1] == FactorKind::reduce);
  CHECK(Rule::parse("m n ->").out == std::vector<std::vector<int>>{{}});
}

TEST_CASE("a pair of model-parallel layers communicates after the second one") {
  CHECK(plan(product, {{"batch", no}, {no, "model"}}, 2) ==
        "(batch, -) , (-, model) -> (batch, model)");
  CHECK(plan(product, {{"batch", "model"}, {"model", no}}, 2) ==
        "(batch, model) , (model, -) -> (batch, -) +sum over model");
}

TEST_CASE("a Variable sharded by the batch's dimension is gathered, whatever that costs") {
  CHECK(plan(product, {{"batch", no}, {"batch", no}}, 2) == "(batch, -) , (-, -) -> (batch, -)");
  CHECK(plan(product, {{"batch", no}, {no, "batch"}}, 2) == "(batch, -) , (-, -) -> (batch, -)");
  CHECK(plan(product, {{no, "batch"}, {no, "batch"}}, 2) ==
        "(-, batch) , (batch, -) -> (-, -) +sum over batch");
  CHECK(plan("m n, n -> m n", {{"batch", no}, {"batch"}}, 2) == "(batch, -) , (-) -> (batch, -)");
}

TEST_CASE("a Variable's sharding decides where the activation has none") {
  CHECK(plan(product, {{no, no}, {no, "model"}}, 2) == "(-, -) , (-, model) -> (-, model)");
  CHECK(plan(product, {{no, no}, {"model", no}}, 2) ==
        "(-, model) , (model, -) -> (-, -) +sum over model");
}

TEST_CASE("at equal costs the first operand's layout is used") {
  CHECK(plan("m n, m n -> m n", {{"batch", no}, {no, "batch"}}) ==
        "(batch, -) , (batch, -) -> (batch, -)");
  CHECK(plan("m n, m n -> m n", {{no, "batch"}, {"batch", no}}) ==
        "(-, batch) , (-, batch) -> (-, batch)");
  CHECK(plan("m n, n m -> m n", {{"batch", no}, {"batch", no}}) ==
        "(batch, -) , (-, batch) -> (batch, -)");
}

TEST_CASE("dimensions that shard no input stay out of a plan") {
  CHECK(plan("m n, m n -> m n", {{"batch", no}, {no, no}}) ==
        "(batch, -) , (batch, -) -> (batch, -)");
  CHECK(plan("m n -> m n", {{no, no}}) == "(-, -) -> (-, -)");
}

TEST_CASE("only what must be replicated is gathered") {
  CHECK(plan("m !n -> m !n", {{"batch", "model"}}) == "(batch, -) -> (batch, -)");
  CHECK(plan("m . -> m", {{"batch", "model"}}) == "(batch, -) -> (batch)");
}

TEST_CASE("outputs that lack a reduced factor are partial sums") {
  Rule rule = Rule::parse("m k, m n -> m, k, n");
  rule.factors[0] = FactorKind::reduce;
  CHECK(plan(rule, {{"batch", no}, {"batch", "model"}}) ==
        "(batch, -) , (batch, model) -> (batch) , (-) +sum over batch , (model) +sum over batch");
}

TEST_CASE("a factor that an output lacks is not sharded beyond its elements") {
  const Rule rule = Rule::parse("m n -> m n, m");
  CHECK(plan(rule, {{no, "model"}}, 0, 2) == "(-, model) -> (-, model) , (-)");
  CHECK(plan(rule, {{no, "model"}}, 0, 1) == "(-, -) -> (-, -) , (-)");
  CHECK(plan(rule, {{"model", no}}, 0, 1) == "(model, -) -> (model, -) , (model)");
}

TEST_CASE("several dimensions on an axis keep their order") {
  CHECK(plan("m n -> n m", {{{"model", "batch"}, no}}) ==
        "((model,batch), -) -> (-, (model,batch))");
  CHECK(plan("m n ->", {{"batch", {"spare", "model"}}}) ==
        "(batch, (spare,model)) -> () +sum over batch,model,spare");
}

TEST_CASE("partial sums pass where the rule allows it and all of its inputs are partial") {
  const Spec spec{{8, 8}, at::kFloat};
  const Layout replicated = Layout::replicated(mesh(), 2),
               pending = replicated.with_partial(1, Reduce::sum);
  const Layout maximum = replicated.with_partial(1, Reduce::max);
  Rule add = Rule::parse("m n, m n -> m n");
  add.passing(Passes::sums, {0, 1});
  const auto out = [&](const Layout& a, const Layout& b) {
    return propagate(add, {spec, spec}, {spec}, {a, b}, 0).outputs[0];
  };
  CHECK(out(pending, pending) == pending);
  CHECK(out(pending, replicated) == replicated);
  CHECK(out(replicated, pending) == replicated);
  CHECK(out(maximum, maximum) == replicated);
  CHECK(out(pending, maximum) == replicated);
  CHECK(out(pending, replicated.with_partial(2, Reduce::sum)) == replicated);
  CHECK(out(pending, Layout({"batch", nullptr}, mesh())) == Layout({"batch", nullptr}, mesh()));
}

TEST_CASE("a maximum over a sharded axis of a partial sum does not mix two reductions") {
  const Spec spec{{8, 8}, at::kFloat};
  const Layout partial = Layout({"batch", nullptr}, mesh()).with_partial(2, Reduce::sum);
  Rule largest = Rule::parse("m n -> n");
  largest.reducing(Reduce::max).passing(Passes::sums);
  const Propagation selected = propagate(largest, {spec}, {{{8}, at::kFloat}}, {partial}, 0);
  CHECK(selected.bytes > 0);
  CHECK((selected.outputs[0].partial_dims() == 1 || selected.outputs[0].partial_dims() == 2));
}

}  // namespace propagate_test
