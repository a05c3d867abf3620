#include <tessera/layers/core/einsum_dense.hpp>

#include <functional>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/layer_check.hpp"

namespace einsum_dense_test {

using namespace tessera;
using Catch::Matchers::Contains;

namespace {

std::string error_of(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("EinsumDense under every layout") {
  test::run_golden_layer_test(
      {.make =
           [] {
             return EinsumDense("abc,cde->abde", {-1, 2, 3}, {.bias_axes = "de"});
           },
       .input = {{2, 3, 4}},
       .output = {2, 3, 2, 3},
       .weights = {{"kernel", {4, 2, 3}}, {"bias", {2, 3}}}});
}

TEST_CASE("EinsumDense refuses invalid arguments in one line that names them") {
  CHECK_THAT(error_of([] { EinsumDense("ab,bc", {3}, {.name = "e"}); }),
             Contains("[EinsumDense e]") && Contains("\"ab,bc\""));
  CHECK_THAT(error_of([] { EinsumDense("ab,bc->ac", {3}, {.bias_axes = "b"}); }),
             Contains("\"b\""));
  for (const Shape& shape : {Shape{0}, {-2}, {1 << 20, 1 << 20}}) {
    CHECK_THAT(error_of([&] { EinsumDense("ab,bc->ac", shape); }), Contains("output_shape"));
  }
  const auto dense = [](const std::string& equation, const Shape& output, const Shape& input) {
    return error_of([&] { LayerHandle(EinsumDense(equation, output))(ones(input)); });
  };
  CHECK_THAT(dense("ab,bc->ac", {3}, {2, 3, 4}), Contains("(2, 3, 4)"));
  CHECK_THAT(dense("abc,cd->abd", {3}, {2, 3, 4}), Contains("output_shape"));
  CHECK_THAT(dense("abc,cd->abd", {4, 5}, {2, 3, 4}), Contains("letter b"));
}

}  // namespace einsum_dense_test
