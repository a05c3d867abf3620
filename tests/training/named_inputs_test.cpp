#include <ATen/ATen.h>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace named_inputs_test {

using namespace tessera;
using test::error_line;

namespace {

/// Two inputs of 2 and 3 features; outputs "sum" and "difference" of their Dense layers.
Functional two_inputs() {
  const Input ages({2}, {.name = "ages"}), scores({3}, {.name = "scores"});
  const SymbolicTensor a = Dense(4, {.kernel_initializer = GlorotUniform({.seed = 1})})(ages);
  const SymbolicTensor b = Dense(4, {.kernel_initializer = GlorotUniform({.seed = 2})})(scores);
  Functional model({ages, scores},
                   {Add({.name = "sum"})({a, b}), Subtract({.name = "difference"})({a, b})});
  model.compile({.optimizer = SGD(0.1), .loss = {"mse", "mae"}});
  return model;
}

}  // namespace

TEST_CASE("inputs and labels are matched by name, in any order") {
  const at::Tensor ages = at::rand({10, 2}), scores = at::rand({10, 3});
  const at::Tensor sums = at::rand({10, 4}), differences = at::rand({10, 4});
  const Functional by_order = two_inputs(), by_name = two_inputs();
  const Examples all{.x = {ages, scores}, .y = {sums, differences}};
  const FitOptions options{.batch_size = 4, .epochs = 2, .verbose = 0};
  const History expected = by_order.fit(all, options);
  const History history = by_name.fit({{"scores", scores}, {"ages", ages}},
                                      {{"difference", differences}, {"sum", sums}}, options);
  CHECK(expected.steps.size() == 6);
  CHECK(history.steps == expected.steps);
  const Logs values = by_name.evaluate({{"scores", scores}, {"ages", ages}},
                                       {{"sum", sums}, {"difference", differences}},
                                       {.batch_size = 4, .verbose = 0});
  CHECK(values == by_order.evaluate(all, {.batch_size = 4, .verbose = 0}));

  const Input a({2}, {.name = "a"}), b({3}, {.name = "b"});
  Functional single({a, b}, {Dense(1)(Concatenate()({a, b}))});
  single.compile({.optimizer = SGD(0.1), .loss = "mse"});
  const at::Tensor y = at::rand({10, 1});
  CHECK(single.fit({{"b", scores}, {"a", ages}}, y, {.verbose = 0}).steps.size() == 1);
  CHECK(single.evaluate({{"b", scores}, {"a", ages}}, y, {.verbose = 0}).size() == 1);
  const Examples ordered = single->examples({{"b", scores}, {"a", ages}}, y);
  CHECK(single.fit(DataPipeline(ordered).batch(5), {.verbose = 0}).steps.size() == 2);
  CHECK(ordered.x.size() == 2);
  CHECK(ordered.x[0].is_same(ages));
  CHECK(ordered.y[0].is_same(y));
  CHECK(at::equal(single.predict({{"b", scores}, {"a", ages}}),
                  single.predict(Examples{.x = {ages, scores}})));
}

TEST_CASE("an unknown, missing or duplicate name is an error of one line") {
  const Functional model = two_inputs();
  const at::Tensor x2 = at::rand({4, 2}), x3 = at::rand({4, 3}), y = at::rand({4, 4});
  const FitOptions silent{.verbose = 0};
  using Named = NamedArrays;
  const auto line = [&](const Named& x, const Named& labels) {
    return error_line([&] { model.fit(x, labels, silent); });
  };
  const Named labels = {{"sum", y}, {"difference", y}};
  CHECK(line({{"ages", x2}, {"score", x3}}, labels) ==
        "[fit, x] the model has \"ages\", \"scores\". Received: \"score\". "
        "To fix: write \"scores\".");
  CHECK(line({{"ages", x2}}, labels) ==
        "[fit, x] the model has \"ages\", \"scores\". Received: no \"scores\". "
        "To fix: pass it too.");
  CHECK(line({{"ages", x2}, {"scores", x3}, {"ages", x2}}, labels) ==
        "[fit, x] each name appears once. Received: \"ages\" twice. To fix: leave one out.");
  CHECK(line({{"ages", at::Tensor()}, {"scores", x3}}, labels) ==
        "[fit, x] each name has a tensor. Received: \"ages\" without one. To fix: pass a tensor.");
  CHECK(line({{"ages", x2}, {"scores", x3}}, {{"sum", y}, {"product", y}}) ==
        "[fit, y] the model has \"sum\", \"difference\". Received: \"product\". "
        "To fix: use one of \"sum\", \"difference\".");
  const Sequential chain({Dense(1)});
  chain.compile({.optimizer = SGD(0.1), .loss = "mse"});
  CHECK(error_line([&] {
          chain.fit({{"x", x2}}, y, silent);
        }) ==
        "[fit, x] named arrays need a model with names for its inputs. "
        "Received: a model without input names. To fix: pass arrays in order.");
}

}  // namespace named_inputs_test
