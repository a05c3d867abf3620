#include <tessera/framework/base/error.hpp>
#include <tessera/optimizers/schedules/schedules.hpp>

#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/optimizer_cases.hpp"

namespace schedules_test {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("schedules match Keras") {
  for (const Json& golden : keras_optimizers("schedules")) {
    const LearningRateScheduleHandle schedule = schedule_from_config(golden.at("serialized"));
    const Json& steps = golden.at("steps");
    const auto initial = schedule(0);
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto expected = golden.at("values")[i].get<double>();
      INFO(golden.at("serialized").dump() << " step " << steps[i]);
      CHECK(schedule(steps[i].get<int64_t>()) ==
            Approx(expected).epsilon(1e-6).margin(1e-6 * std::max(initial, 0.01)));
    }
  }
}

TEST_CASE("invalid schedules are named") {
  CHECK_THROWS_WITH(ExponentialDecay(0.1, 0, 0.5),
                    "[ExponentialDecay] decay_steps is positive. Received: 0. To fix: count the "
                    "steps of the decay.");
  CHECK_THROWS_AS(PolynomialDecay(0.1, -1), ConfigError);
  CHECK_THROWS_AS(InverseTimeDecay(0.1, 0, 1), ConfigError);
  CHECK_THROWS_AS(CosineDecay(0.1, 0), ConfigError);
  CHECK_THROWS_WITH(CosineDecayRestarts(0.1, 0), Catch::Contains("first_decay_steps"));
  CHECK_THROWS_WITH(PiecewiseConstantDecay({1, 2}, {0.1, 0.2}),
                    Catch::Contains("2 boundaries, 2 values"));
  CHECK_THROWS_WITH(PiecewiseConstantDecay({2, 2}, {0.1, 0.2, 0.3}), Catch::Contains("2 after 2"));
}

}  // namespace schedules_test
