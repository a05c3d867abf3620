#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/initializers/initializers.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/internal/memory_order.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layouts.hpp"

namespace variable_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;

namespace {

const Mesh mesh = create_mesh({{"batch", 2}, {"model", 2}});

DTensor value_of(double number, const Layout& layout = Layout::replicated(mesh, 2)) {
  return filled({4, 4}, number, at::kFloat, layout);
}

at::Tensor matrix_of(double number) { return at::full({4, 4}, number, at::kFloat); }

const void* memory(const Variable& variable) { return variable.value().blocks()[0].data_ptr(); }

void fill(Variable& variable, double number) {
  const c10::InferenceMode inference;
  for (const at::Tensor& block : variable.writable()) block.fill_(number);
}

Variable drawn_variable() {
  return Variable(
      VariableSpec{"dense/kernel", {6, 4}, at::kFloat, GlorotUniform(), Seed{5, 6}, true});
}

}  // namespace

TEST_CASE("a gradient after an assignment to a saved variable is a StateError") {
  Variable w("kernel", value_of(2));
  for (bool in_place : {false, true}) {
    GradientTape tape;
    const DTensor y = ops::sum(ops::square(w.value()));
    if (in_place) {
      w.writable();
    } else {
      w.assign(value_of(3));
    }
    CHECK_THROWS_AS(tape.gradient(y, w.value()), StateError);
  }
  GradientTape tape;
  const DTensor y = ops::sum(ops::square(w.value()));
  CHECK(difference(tape.gradient(y, w.value()).full(), matrix_of(6)) == "");
}

TEST_CASE("an average initialized from a weight does not share its memory") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    Variable w("kernel", value_of(1));
    Variable average("average", w.value(), false);
    w.assign_add(value_of(2));
    CHECK(difference(average.value().full(), matrix_of(1)) == "");
    average.assign(ops::scale(average.value(), 0.5));
    CHECK(difference(w.value().full(), matrix_of(3)) == "");
    CHECK_FALSE(average.trainable());
  }
}

TEST_CASE("a saved value can be restored") {
  Variable w("kernel", value_of(1));
  const DTensor best = w.value();
  w.assign(value_of(7));
  w.assign_add(value_of(1));
  CHECK(difference(w.value().full(), matrix_of(8)) == "");
  CHECK(difference(best.full(), matrix_of(1)) == "");
  w.assign(best);
  fill(w, 0);
  CHECK(difference(best.full(), matrix_of(1)) == "");
}

TEST_CASE("a variable made of another's relayout has its own memory") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    Variable w("kernel", value_of(1));
    // Sharding a replicated value is free: the blocks are views of it.
    Variable cut("cut", relayout_value(w.value(), Layout({"batch", unsharded}, mesh)));
    fill(w, 5);
    CHECK(difference(cut.value().full(), matrix_of(1)) == "");
    fill(cut, 6);
    CHECK(difference(w.value().full(), matrix_of(5)) == "");
  }
}

TEST_CASE("a user's buffer is never written to") {
  std::vector<float> buffer(16, 1);
  const at::Tensor mine = at::from_blob(buffer.data(), {4, 4}, at::kFloat);
  const Layout layout = Layout::replicated(mesh, 2);
  Variable w("kernel", pack(mine, layout));
  Variable moved("kernel", pack(at::from_blob(buffer.data(), {4, 4}, at::kFloat), layout));
  w.assign_add(value_of(1));
  fill(w, 9);
  fill(moved, 9);
  w.assign(pack(mine, layout));
  fill(w, 9);
  CHECK(buffer == std::vector<float>(16, 1));
}

TEST_CASE("an assignment is in place while nobody else holds the memory") {
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    Variable w("kernel", value_of(1));
    const void* before = memory(w);
    w.assign(value_of(2));
    CHECK(memory(w) == before);
    w.writable();
    CHECK(memory(w) == before);
    {
      const DTensor held = w.value();
      w.assign(value_of(3));
      CHECK(memory(w) != before);
      CHECK(difference(held.full(), matrix_of(2)) == "");
    }
    const at::Tensor block = w.value().blocks()[0];
    w.assign(value_of(4));
    CHECK(block[0][0].item<float>() == 3);
    const at::Tensor view = w.value().blocks()[0].narrow(0, 0, 1);
    fill(w, 5);
    CHECK(view[0][0].item<float>() == 4);
    CHECK(w.value().is_parameter());
  }
}

TEST_CASE("writable() returns a contiguous tensor") {
  const Layout layout = Layout::replicated(create_mesh({{"batch", 1}}), 2);
  Variable w("kernel", pack(at::arange(12, at::kFloat).reshape({3, 4}).t(), layout));
  const at::Tensor before = w.value().full().clone();
  CHECK(w.writable()[0].is_contiguous());
  CHECK(difference(w.value().full(), before) == "");
}

TEST_CASE("blocks keep their memory order, in which full() is not") {
  const at::Tensor numbers = at::arange(24, at::kFloat).reshape({2, 3, 4});
  const MemoryOrder order = {2, 0, 1};
  Variable w(VariableSpec{
      .path = "kernel", .shape = {2, 3, 4}, .initializer = Constant(1), .memory_order = order});
  const auto ordered = [&] {
    const Blocks& blocks = w.value().blocks();
    return std::all_of(blocks.begin(), blocks.end(),
                       [&](const at::Tensor& block) { return is_in_order(block, order); });
  };
  CHECK(ordered());
  w.assign(pack(numbers, w.layout()));
  CHECK(ordered());
  w.place({{2, 3, 4}, Layout({unsharded, unsharded, "batch"}, mesh)});
  CHECK(ordered());
  const DTensor held = w.value();
  w.assign_add(pack(numbers, w.layout()));
  w.writable();
  CHECK(ordered());
  CHECK(w.value().full().is_contiguous());
  CHECK(difference(w.value().full(), numbers * 2) == "");
  CHECK(difference(held.full(), numbers) == "");
}

TEST_CASE("a new placement moves the value") {
  Variable w("kernel", value_of(0));
  const at::Tensor numbers = at::arange(16, at::kFloat).reshape({4, 4});
  w.assign(pack(numbers, w.layout()));
  for (const Layout& layout : all_layouts(mesh, 2)) {
    w.place({w.shape(), layout});
    CHECK(w.layout() == layout);
    CHECK(w.value().layout() == layout);
    CHECK(wrong_shards(w.value(), numbers) == "");
  }
  const Layout elsewhere = Layout::batch_sharded(create_mesh({{"batch", 3}}), "batch", 2);
  w.place({w.shape(), elsewhere});
  CHECK(w.value().mesh() == elsewhere.mesh());
  CHECK(wrong_shards(w.value(), numbers) == "");
}

TEST_CASE("a moved value still belongs to the variable") {
  Variable w("kernel", value_of(1));
  const DTensor before = w.value();
  w.place({w.shape(), Layout({"batch", unsharded}, mesh)});
  fill(w, 8);
  CHECK(difference(before.full(), matrix_of(1)) == "");
  CHECK(w.value().id() == w.id());
}

TEST_CASE("a variable is drawn straight into its shards, with the same values in every layout") {
  const at::Tensor numbers = drawn_variable().value().full();
  for (BlockPolicy policy : policies) {
    const BlockPolicyScope scope(policy);
    for (const Layout& layout : all_layouts(mesh, 2)) {
      Variable w = drawn_variable();
      w.place({w.shape(), layout});
      CHECK_FALSE(w.has_value());
      CHECK(w.value().layout() == layout);
      CHECK(wrong_shards(w.value(), numbers) == "");
      // Views and updates of other tensors cost a second dispatch.
      for (const at::Tensor& block : w.value().blocks()) CHECK(block.is_inference());
      w.assign(filled({6, 4}, 1, at::kFloat, layout));
      for (const at::Tensor& block : w.value().blocks()) CHECK(block.is_inference());
    }
  }
}

TEST_CASE("loading into a variable that was not read draws nothing") {
  struct Forbidden : Initializer {
    std::string class_name() const override { return "Forbidden"; }
    DTensor draw(const Shape&, at::ScalarType, Seed) const override {
      throw StateError("test", "nothing is drawn", "a draw", "");
    }
  };
  const InitializerHandle forbidden(std::make_shared<const Forbidden>());
  Variable w(VariableSpec{"kernel", {4, 4}, at::kFloat, forbidden, Seed{}, true});
  w.place({w.shape(), Layout({"batch", "model"}, mesh)});
  w.assign(value_of(3));
  CHECK(difference(w.value().full(), matrix_of(3)) == "");
  Variable unread(VariableSpec{"kernel", {4, 4}, at::kFloat, forbidden, Seed{}, true});
  CHECK_THROWS_AS(unread.value(), StateError);
}

TEST_CASE("a variable is read in the layout and dtype that an operation requests") {
  Variable w("kernel", value_of(1));
  Placement placement{w.shape(), Layout({"batch", unsharded}, mesh)};
  placement.use = Layout::replicated(mesh, 2);
  w.place(placement);
  const DTensor read = w.read(at::kBFloat16);
  CHECK(read.layout() == Layout::replicated(mesh, 2));
  CHECK(read.dtype() == at::kBFloat16);
  CHECK(w.value().layout() == placement.layout);
}

TEST_CASE("a gradient through read() reaches the variable") {
  for (const char* rows : {unsharded, "batch"}) {
    Variable w("kernel", value_of(3));
    Placement placement{w.shape(), Layout({rows, unsharded}, mesh)};
    placement.use = Layout::replicated(mesh, 2);
    w.place(placement);
    GradientTape tape;
    const DTensor y = ops::sum(ops::square(w.read(at::kDouble)));
    const DTensor gradient = tape.gradient(y, w.value());
    REQUIRE(gradient.defined());
    CHECK(difference(gradient.full().to(at::kFloat), matrix_of(6)) == "");
  }
}

TEST_CASE("assignments adopt the variable's layout and dtype, and must have its shape") {
  Variable w("dense/kernel", value_of(1, Layout({"batch", "model"}, mesh)));
  w.assign(filled({4, 4}, 2, at::kDouble, Layout::replicated(mesh, 2)));
  CHECK(w.value().dtype() == at::kFloat);
  CHECK(w.value().layout() == Layout({"batch", "model"}, mesh));
  w.assign(filled({4, 4}, 3, at::kFloat, Layout::replicated(create_mesh({{"x", 3}}), 2)));
  CHECK(difference(w.value().full(), matrix_of(3)) == "");
  w.assign_sub(value_of(1));
  CHECK(difference(w.value().full(), matrix_of(2)) == "");
  CHECK_THROWS_WITH(w.assign(filled({4}, 1, at::kFloat, Layout::replicated(mesh, 1))),
                    Catch::Contains("dense/kernel") && Catch::Contains("(4,)"));
}

TEST_CASE("copies of a variable share it") {
  Variable w("kernel", value_of(1));
  Variable same = w;
  same.assign(value_of(2));
  CHECK(difference(w.value().full(), matrix_of(2)) == "");
  CHECK(same.is(w));
  CHECK_FALSE(Variable("kernel", value_of(1)).is(w));
  CHECK(w.value().id() == w.id());
}

}  // namespace variable_test
