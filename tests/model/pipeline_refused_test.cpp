#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"

namespace pipeline_refused_test {

using namespace tessera;
using Catch::Contains;

TEST_CASE("a model with a pipeline in its layouts is refused") {
  LayoutMap layouts(create_mesh({{"stage", 2}, {"batch", 2}}, virtual_cpus(4)));
  layouts.set_pipeline({.microbatches = 4, .schedule = "zb_h1"});
  const Sequential model({Input({3}), Dense(2), Dense(1)});
  const CompileOptions options{.optimizer = "sgd", .loss = "mse", .layouts = layouts};
  CHECK_THROWS_AS(model.compile(options), ConfigError);
  CHECK_THROWS_WITH(model.compile(options), Contains("nothing runs a pipeline yet") &&
                                                Contains("stage, 4 microbatches, schedule zb_h1"));
  // A model that is not built yet is refused when it is.
  const Sequential unbuilt({Dense(2)});
  unbuilt.compile(options);
  const DatasetHandle data = TensorDataset(at::ones({8, 3}), at::ones({8, 2}));
  CHECK_THROWS_WITH(unbuilt.fit(data, {.verbose = 0}), Contains("nothing runs a pipeline yet"));
}

}  // namespace pipeline_refused_test
