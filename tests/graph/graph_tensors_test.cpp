#include <tessera/tessera.hpp>

#include <ATen/ATen.h>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace graph_tensors_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::difference;

TEST_CASE("input() and output() make a model of another's first layers") {
  const Dense hidden(4, {.activation = "relu", .name = "hidden"}), last(2);
  Input x({3});
  const Functional full_model({x}, {last(hidden(x))});
  const Functional features({full_model.input()}, {hidden.output()});
  CHECK(features->output_shapes({{5, 3}}) == Shapes{{5, 4}});
  const at::Tensor rows = at::randn({5, 3});
  const at::Tensor kernel = hidden->weights()[0].read().full();
  CHECK(difference(features.predict(rows), rows.matmul(kernel).relu(), 1e-6) == "");
  CHECK(last.input().shape() == Shape{-1, 4});
  CHECK(hidden->weights()[0].path() == "hidden/kernel");
}

TEST_CASE("a Sequential that starts with an Input has a graph that grows") {
  const Dense hidden(4), last(2);
  Sequential model({Input({3}), hidden, last});
  const Functional features({model.input()}, {hidden.output()});
  const at::Tensor rows = at::randn({5, 3});
  CHECK(features.predict(rows).sizes() == at::IntArrayRef({5, 4}));
  CHECK(difference(Functional({model.input()}, {model.output()}).predict(rows), model.predict(rows),
                   1e-6) == "");
  model.add(Dense(7));
  CHECK(model.output().shape() == Shape{-1, 7});
  CHECK(last.input().shape() == Shape{-1, 4});
}

TEST_CASE("several inputs and outputs are returned as lists") {
  Input a({3}), b({4});
  const Concatenate both;
  const Functional model({a, b}, {both({a, b}), Dense(2)(a)});
  CHECK(model->symbolic_inputs().size() == 2);
  CHECK(both->symbolic_inputs()[1].shape() == Shape{-1, 4});
  CHECK(model->symbolic_outputs()[1].shape() == Shape{-1, 2});
  CHECK_THROWS_WITH(model.input(), Contains("2") && Contains("symbolic_inputs()"));
  CHECK_THROWS_WITH(model.output(), Contains("symbolic_outputs()"));
}

TEST_CASE("input() and output() need exactly one call in a graph") {
  const Dense layer(2, {.name = "lonely"});
  CHECK_THROWS_WITH(layer.output(), Contains("Dense lonely") && Contains("no call"));
  { layer(Input({3})); }
  CHECK_THROWS_WITH(layer.output(), Contains("no longer exists"));
  Input x({3});
  const Dense twice(3);
  const Functional model({x}, {twice(twice(x))});
  CHECK_THROWS_WITH(twice.input(), Contains("2 calls"));
  CHECK_THROWS_WITH(Sequential({Dense(2)}).input(), Contains("must begin with an Input"));
}

}  // namespace graph_tensors_test
