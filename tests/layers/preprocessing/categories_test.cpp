#include <tessera/layers/preprocessing/category_encoding.hpp>
#include <tessera/layers/preprocessing/discretization.hpp>
#include <tessera/layers/preprocessing/hashed_crossing.hpp>
#include <tessera/layers/preprocessing/hashing.hpp>
#include <tessera/layers/preprocessing/integer_lookup.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/data/tensor_dataset.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/layer_check.hpp"

namespace categories_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;
using test::run_golden_layer_test;

namespace {

DTensor replicated(const at::Tensor& tensor) {
  return pack(tensor, Layout::replicated(default_mesh(), tensor.dim()));
}

/// Integers in [lo, hi).
SampleInput numbers(const Shape& shape, double lo, double hi) { return {shape, at::kLong, lo, hi}; }

}  // namespace

TEST_CASE("layers that encode categories under every layout") {
  run_golden_layer_test({.make = [] { return CategoryEncoding(4); },
                         .input = numbers({5, 3}, -1, 5),
                         .output = {5, 4}});
  run_golden_layer_test({.make = [] { return CategoryEncoding(4, {.output_mode = "count"}); },
                         .input = numbers({5, 3}, 0, 4),
                         .output = {5, 4},
                         .more_inputs = {{{5, 3}}}});
  run_golden_layer_test({.make = [] { return Hashing(7, {.mask_value = 2, .salt = {3}}); },
                         .input = numbers({5, 3}, 0, 9),
                         .output = {5, 3}});
  const auto lookup = [] {
    return IntegerLookup({.num_oov_indices = 2, .mask_token = 3, .vocabulary = {5, 1, 4}});
  };
  run_golden_layer_test({.make = lookup, .input = numbers({5, 3}, 0, 9), .output = {5, 3}});
}

TEST_CASE("CategoryEncoding skips numbers that are no category") {
  const at::Tensor x = at::tensor({0, 1, 1, -1, 3, 2}, at::kLong).reshape({2, 3});
  const at::Tensor y = CategoryEncoding(3, {.output_mode = "count"})(replicated(x)).full();
  CHECK(at::equal(y, at::tensor({1.f, 2.f, 0.f, 0.f, 0.f, 1.f}).reshape({2, 3})));
  // Files and Input() give numbers as float32.
  const DTensor floats = replicated(x.to(at::kFloat));
  CHECK(at::equal(CategoryEncoding(3, {.output_mode = "count"})(floats).full(), y));
  CHECK_THROWS_WITH(CategoryEncoding(0), Contains("num_tokens is at least 1"));
  CHECK_THROWS_WITH(CategoryEncoding(2, {.output_mode = "int", .name = "c"}),
                    Contains("[CategoryEncoding c]") && Contains("\"multi_hot\""));
  CHECK_THROWS_WITH(CategoryEncoding(2, {.sparse = true}), Contains("sparse"));
  CHECK_THROWS_WITH(CategoryEncoding(2)->build({{4, 3}, {4, 3}}), Contains("\"count\""));
  CHECK_THROWS_WITH(CategoryEncoding(2, {.output_mode = "count"})->build({{4, 3}, {4, 2}}),
                    Contains("the same shape") && Contains("(4, 2)"));
  CHECK_THROWS_WITH(CategoryEncoding(2)->build({{4, 3, 2}}), Contains("(batch, numbers)"));
}

TEST_CASE("Discretization puts each value into its bin, and NaN into the last") {
  const Discretization layer({.bin_boundaries = {0, 1.5}});
  const at::Tensor x = at::tensor({-3.0, 0.0, 1.0, 1.5, 9.0, std::nan("")}).to(at::kFloat);
  const at::Tensor y = layer(replicated(x.reshape({6, 1}))).full().flatten();
  CHECK(at::equal(y, at::tensor({0, 1, 1, 2, 2, 2}, at::kInt)));
  CHECK(layer->config() == Json{{"name", "discretization"},
                                {"dtype", "float32"},
                                {"bin_boundaries", {0.0, 1.5}},
                                {"num_bins", nullptr},
                                {"epsilon", 0.01},
                                {"output_mode", "int"},
                                {"sparse", false}});
  CHECK_THROWS_WITH(layer.adapt(x), Contains("num_bins"));
  CHECK_THROWS_WITH(Discretization({}), Contains("neither"));
  CHECK_THROWS_WITH(Discretization({.bin_boundaries = {1}, .num_bins = 2}), Contains("both"));
  CHECK_THROWS_WITH(Discretization({.bin_boundaries = {1, 0}}), Contains("ascend"));
  CHECK_THROWS_WITH(Discretization({.num_bins = 0}), Contains("num_bins"));
  CHECK_THROWS_WITH(Discretization({.num_bins = 2, .epsilon = 0}), Contains("epsilon"));
  const Discretization learns({.num_bins = 2, .name = "d"});
  CHECK_THROWS_WITH(learns(replicated(x.reshape({6, 1}))),
                    Contains("[Discretization d]") && Contains("adapt()"));
  CHECK_THROWS_WITH(learns.adapt(at::zeros({0, 3})), Contains("at least one value"));
  learns.adapt(TensorDataset(at::arange(2000).to(at::kFloat).reshape({2000, 1})));
  REQUIRE(learns.bin_boundaries().size() == 1);
  CHECK(learns.bin_boundaries()[0] == Approx(1000).margin(40));
}

TEST_CASE("Hashing and HashedCrossing refuse invalid arguments") {
  CHECK_THROWS_WITH(Hashing(0), Contains("num_bins is at least 1"));
  CHECK_THROWS_WITH(Hashing(3, {.salt = {1, 2, 3}}), Contains("salt"));
  CHECK_THROWS_WITH(Hashing(3, {.output_mode = "tf_idf"}), Contains("\"one_hot\""));
  CHECK_THROWS_WITH(Hashing(3, {.name = "h", .dtype = "float32"}),
                    Contains("layer h") && Contains("\"int64\""));
  CHECK_THROWS_WITH(Hashing(3, {.mask_value = "a"})(replicated(at::zeros({2, 2}, at::kLong))),
                    Contains("mask_value is a number"));
  CHECK_THROWS_WITH(Hashing(3, {.mask_value = 1})(std::vector<std::string>{"a"}),
                    Contains("mask_value is a text"));
  CHECK(Hashing(3)->config().at("dtype") == "int64");
  CHECK(Hashing(3, {.dtype = "int32"})(replicated(at::zeros({2, 2}, at::kLong))).dtype() ==
        at::kInt);
  CHECK_THROWS_WITH(HashedCrossing(0), Contains("num_bins is at least 1"));
  CHECK_THROWS_WITH(HashedCrossing(3)->build({{4, 1}}), Contains("at least two"));
  CHECK_THROWS_WITH(HashedCrossing(3)->build({{4, 1}, {4, 2}}), Contains("(4, 2)"));
  const DTensor floats = replicated(at::zeros({2, 1}));
  CHECK_THROWS_WITH(HashedCrossing(3)({floats, floats}), Contains("float32"));
  CHECK_THROWS_WITH(HashedCrossing(3)({Table::Column({"a"}), Table::Column({"a", "b"})}),
                    Contains("equally many rows"));
}

TEST_CASE("IntegerLookup refuses invalid arguments, and numbers without an index") {
  const at::Tensor x = at::tensor({4, 5}, at::kLong).reshape({2, 1});
  const IntegerLookup closed({.num_oov_indices = 0, .mask_token = 9, .vocabulary = {4, 7}});
  CHECK_THROWS_AS(closed(replicated(x)), ConfigError);
  const at::Tensor known = at::tensor({4, 9, 7}, at::kLong).reshape({3, 1});
  CHECK(at::equal(closed(replicated(known)).full().flatten(), at::tensor({1, 0, 2}, at::kLong)));
  CHECK_THROWS_WITH(closed.adapt(x), Contains("a vocabulary"));
  CHECK_THROWS_WITH(IntegerLookup({.name = "i"})(replicated(x)),
                    Contains("[IntegerLookup i]") && Contains("adapt()"));
  CHECK_THROWS_WITH(IntegerLookup({.output_mode = "count"})->build({{2, 1}}), Contains("adapt()"));
  CHECK_THROWS_WITH(IntegerLookup({.oov_method = "md5"}), Contains("\"floormod\""));
  CHECK_THROWS_WITH(IntegerLookup({.salt = {1}}), Contains("farmhash"));
  CHECK_THROWS_WITH(IntegerLookup({.vocabulary = {4, 4}, .name = "i"}),
                    Contains("IntegerLookup i") && Contains("twice"));
  CHECK_THROWS_WITH(IntegerLookup({.max_tokens = 1}), Contains("max_tokens"));
  const IntegerLookup learned;
  CHECK_THROWS_WITH(learned.adapt(at::full({3}, -1, at::kLong)), Contains("not special"));
  learned.adapt(at::tensor({7, 2, 7}, at::kLong));
  CHECK(learned.get_vocabulary() == std::vector<int64_t>{-1, 7, 2});
  CHECK(learned.get_vocabulary(false) == std::vector<int64_t>{7, 2});
  CHECK(learned.vocabulary_size() == 3);
  CHECK(learned->assets().at("vocabulary.txt") == "-1\n7\n2");
  learned.set_vocabulary({1, 2, 3, 4});
  CHECK(learned.vocabulary_size() == 5);
  CHECK_THROWS_WITH(learned->load_assets({{"vocabulary.txt", "-1\n7x"}}), Contains("\"7x\""));
  CHECK(learned.vocabulary_size() == 5);
}

}  // namespace categories_test
