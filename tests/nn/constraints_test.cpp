#include <tessera/framework/nn/initializers/constraints.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/difference.hpp"
#include "tests/support/files.hpp"
#include "tests/support/function_check.hpp"
#include "tests/support/keras_core.hpp"
#include "tests/support/virtual_meshes.hpp"

namespace constraints_test {

using namespace tessera;
using namespace tessera::detail;
using namespace tessera::test;
using Catch::Matchers::Contains;

TEST_CASE("constraints give Keras' values under every layout") {
  const Json file = read_json_file(golden_path("keras_layers.json").string());
  for (const Json& golden : file.at("constraints")) {
    CAPTURE(golden.at("constraint").dump());
    const auto constraint = json_as<ConstraintHandle>(golden.at("constraint"), JsonPath("golden"));
    CHECK(serialized(constraint).at("config") == golden.at("constraint").at("config"));
    const auto constrained = [&](const std::vector<DTensor>& in) { return (*constraint)(in[0]); };
    // In float64: the partial sums of a zero vector must cancel below epsilon.
    CHECK(wrong_values({golden_tensor(golden.at("w"), at::kDouble)}, constrained,
                       golden_tensor(golden.at("value"), at::kDouble), 1e-5) == "");
  }
}

TEST_CASE("constraints of float16 weights hold above a norm of 255, and for zero vectors") {
  const at::Tensor w = at::full({400, 2}, 20, at::kHalf);
  const double norm = 400;
  for (const auto& [constraint, expected] :
       {std::pair(ConstraintHandle(UnitNorm()), 20 / norm),
        {MaxNorm({.max_value = 2}), 40 / norm},
        {MinMaxNorm({.min_value = 1, .max_value = 8}), 160 / norm}}) {
    INFO(constraint->class_name());
    for (const Layout& layout : layouts_of(virtual_mesh({2}), 2, {})) {
      const at::Tensor y = (*constraint)(pack(w, layout)).full();
      CHECK(difference(y, at::full({400, 2}, expected, at::kHalf), 1e-3) == "");
    }
    const at::Tensor zero = (*constraint)(zeros({3, 2}, at::kHalf)).full();
    CHECK(difference(zero, at::zeros({3, 2}, at::kHalf)) == "");
  }
}

TEST_CASE("constraints are made by name, and invalid ones are refused") {
  CHECK(ConstraintHandle("max_norm")->config() == Json{{"max_value", 2.0}, {"axis", 0}});
  CHECK(make_constraint("UnitNorm")->config() == Json{{"axis", 0}});
  CHECK(make_constraint("non_neg")->class_name() == "NonNeg");
  CHECK(ConstraintHandle("min_max_norm")->config() ==
        Json{{"min_value", 0.0}, {"max_value", 1.0}, {"rate", 1.0}, {"axis", 0}});
  CHECK_FALSE(ConstraintHandle());
  CHECK_THROWS_WITH(ConstraintHandle("max_nrom"), Contains("[constraint]") &&
                                                      Contains("\"max_nrom\"") &&
                                                      Contains("\"max_norm\""));
  CHECK_THROWS_WITH(MaxNorm({.max_value = -1}), Contains("[MaxNorm]") && Contains("max_value"));
  CHECK_THROWS_AS(MinMaxNorm({.rate = NAN}), ConfigError);
  CHECK_THROWS_AS((*UnitNorm({.axis = {2}}))(ones({3, 2})), ShapeError);
}

}  // namespace constraints_test
