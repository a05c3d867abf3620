#include <tessera/layers/preprocessing/feature_space.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/model/functional.hpp>
#include <tessera/framework/model/sequential.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/layers/core/dense.hpp>
#include <tessera/layers/preprocessing/normalization.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"

namespace feature_space_test {

using namespace tessera;
using namespace tessera::detail;
using Catch::Matchers::Contains;
using test::difference;

namespace {

Table people() {
  return {{"age", at::tensor({20.f, 30.f, 40.f, 50.f})},
          {"sex", at::tensor({0, 1, 1, 0}, at::kLong)},
          {"city", {"Bern", "Genf", "Bern", "Chur"}}};
}

}  // namespace

TEST_CASE("FeatureSpace joins features by name, crosses last") {
  const FeatureSpace space({.features = {{"sex", FeatureSpace::integer_hashed(2)},
                                         {"city", "string_categorical"},
                                         {"age", FeatureSpace::float_normalized()}},
                            .crosses = {FeatureSpace::cross({"sex", "city"}, 3)}});
  CHECK_THROWS_WITH(space(people()), Contains("\"age\" has learned nothing"));
  CHECK_THROWS_WITH(space.width(), Contains("adapt()"));
  space.adapt(people());
  const at::Tensor features = space(people());
  CHECK(space.width() == 1 + 4 + 2 + 3);
  CHECK(features.sizes().vec() == Shape{4, 10});
  const at::Tensor age = (at::tensor({20.f, 30.f, 40.f, 50.f}) - 35) / std::sqrt(125.f);
  CHECK(difference(features.select(1, 0), age, 1e-6) == "");
  // [UNK], Bern, Genf, Chur: by frequency, then in reverse alphabetical order.
  CHECK(at::equal(features.slice(1, 1, 5).argmax(1), at::tensor({1, 2, 1, 3}, at::kLong)));
  CHECK(at::equal(features.sum(1) - features.select(1, 0), at::full({4}, 3.f)));
  const Table named = space.features(people());
  CHECK(named.names() == std::vector<std::string>{"age", "city", "sex", "sex_X_city"});
  CHECK(at::equal(named["city"].numbers(), features.slice(1, 1, 5)));
  const DatasetHandle data = space.dataset(people(), at::ones({4}));
  CHECK(data.input_shapes() == std::vector<Shape>{{10}});
  const Examples rows = data->get(std::vector<int64_t>{2, 0});
  CHECK(at::equal(rows.x[0], features.index_select(0, at::tensor({2, 0}, at::kLong))));
}

TEST_CASE("a FeatureSpace of numbers works inside a model and gives the same there") {
  const FeatureSpace space({.features = {{"age", FeatureSpace::float_discretized({.num_bins = 2})},
                                         {"sex", "integer_categorical"},
                                         {"bmi", FeatureSpace::float_rescaled(0.1, 1)},
                                         {"pulse", "float_normalized"}},
                            .crosses = {FeatureSpace::cross({"age", "sex"}, 5)}});
  Table table = people();
  table.add("bmi", at::tensor({21.f, 25.f, 30.f, 19.f}));
  table.add("pulse", at::tensor({60.f, 70.f, 80.f, 65.f}));
  space.adapt(table);
  Input age({1}), sex({1}, {.dtype = "int64"}), bmi({1}), pulse({1});
  const SymbolicTensor features =
      space({{"age", age}, {"sex", sex}, {"bmi", bmi}, {"pulse", pulse}});
  CHECK(features.shape() == Shape{-1, space.width()});
  const Functional model({age, sex, bmi, pulse}, {features});
  Inputs inputs;
  for (const char* name : {"age", "sex", "bmi", "pulse"}) {
    const at::Tensor column = table[name].numbers().unsqueeze(1);
    inputs.push_back(pack(column, Layout::replicated(default_mesh(), 2)));
  }
  CHECK(difference(model(inputs).full(), space(table), 0, 1e-6) == "");
  CHECK_THROWS_WITH(space({{"age", age}}), Contains("none for \"bmi\""));
  const FeatureSpace texts({.features = {{"city", FeatureSpace::string_hashed(4)}}});
  CHECK_THROWS_WITH(texts({{"city", age}}), Contains("texts"));
}

TEST_CASE("FeatureSpace refuses invalid arguments") {
  const auto space_of = [](const FeatureSpaceOptions& options) { return FeatureSpace(options); };
  CHECK_THROWS_WITH(space_of({}), Contains("[FeatureSpace]") && Contains("at least one feature"));
  CHECK_THROWS_WITH(space_of({.features = {{"a", "flaot"}}, .name = "s"}),
                    Contains("[FeatureSpace s]") && Contains("write \"float\""));
  CHECK_THROWS_WITH(space_of({.features = {{"a", "float"}, {"a", "float"}}}),
                    Contains("\"a\" twice"));
  CHECK_THROWS_WITH(space_of({.features = {{"a", "float"}}, .output_mode = "list"}),
                    Contains("\"concat\", \"dict\""));
  CHECK_THROWS_WITH(
      space_of({.features = {{"a", FeatureSpace::integer_hashed(3, {.output_mode = "int"})}}}),
      Contains("\"a\" with output_mode \"int\""));
  CHECK_THROWS_WITH(space_of({.features = {{"abc", "integer_hashed"}},
                              .crosses = {FeatureSpace::cross({"abc", "abd"})}}),
                    Contains("\"abd\"") && Contains("write \"abc\""));
  CHECK_THROWS_WITH(FeatureSpace::feature("string", Normalization(), "float"),
                    Contains("a layer that takes texts") && Contains("Normalization"));
  CHECK_THROWS_WITH(FeatureSpace::feature("int64", Normalization(), "float"),
                    Contains("\"int32\""));
  const FeatureSpace age({.features = {{"age", "float"}}});
  CHECK_THROWS_WITH(age(Table{{"ages", at::ones({2})}}), Contains("\"age\""));
  CHECK_THROWS_WITH(age(Table{{"age", {"a", "b"}}}),
                    Contains("feature \"age\"") && Contains("string_categorical"));
  const FeatureSpace city({.features = {{"city", "string_hashed"}}});
  CHECK_THROWS_WITH(city(Table{{"city", at::ones({2})}}), Contains("numbers"));
  const FeatureSpace dict({.features = {{"age", "float"}}, .output_mode = "dict"});
  CHECK_THROWS_WITH(dict(people()), Contains("features()"));
  const FeatureSpace crossed({.features = {{"age", "float"}, {"sex", "integer_hashed"}},
                              .crosses = {FeatureSpace::cross({"age", "sex"})}});
  CHECK_THROWS_WITH(crossed(people()), Contains("HashedCrossing age_X_sex"));
}

}  // namespace feature_space_test
