#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/error_line.hpp"

namespace empty_handles_test {

using namespace tessera;
using Catch::Matchers::Contains;
using test::error_line;

TEST_CASE("an empty handle throws an error that names it") {
  CHECK_THAT(error_line([] { DTensor().shape(); }),
             Contains("[DTensor]") && Contains("an empty DTensor"));
  CHECK_THAT(error_line([] { DTensor().full(); }), Contains("an empty DTensor"));
  CHECK_THAT(error_line([] { Mesh().size(); }),
             Contains("an empty Mesh") && Contains("create_mesh()"));
  CHECK_THAT(error_line([] { Mesh().describe(); }), Contains("an empty Mesh"));
  CHECK_THAT(error_line([] { Layout().rank(); }), Contains("an empty Layout"));
  CHECK_THAT(error_line([] { Variable().value(); }), Contains("an empty Variable"));
  CHECK_THAT(error_line([] { Variable().path(); }), Contains("an empty Variable"));
  CHECK_THAT(error_line([] { OptimizerHandle()->name(); }), Contains("an empty handle"));
  CHECK_THAT(error_line([] {
               Sequential({Input({4}), LayerHandle(std::shared_ptr<Layer>())});
             }),
             Contains("[LayerHandle] a handle refers to a layer. Received: a null pointer"));
}

TEST_CASE("the gradient of an unwatched value is empty, and reading it throws") {
  const DTensor a = ones({2});
  GradientTape tape;
  const DTensor loss = ops::sum(ops::square(a));
  const DTensor gradient = tape.gradient(loss, a);
  CHECK_FALSE(gradient.defined());
  CHECK_THAT(error_line([&] { gradient.full(); }),
             Contains("a gradient is empty where the target does not depend on the source"));
}

}  // namespace empty_handles_test
