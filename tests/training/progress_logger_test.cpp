#include <tessera/framework/training/callbacks/internal/progress_logger.hpp>

#include <tessera/framework/base/error.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/standard_output.hpp"

namespace progress_logger_test {

using namespace tessera;
using namespace tessera::detail;

TEST_CASE("the bar reads metrics of its own batches only, and not at every one") {
  const test::StandardOutput quiet;
  ProgressLogger logger({.verbose = 1}, true);
  logger.on_train_begin();
  logger.on_epoch_begin(0);
  CHECK(logger.wants_batch_logs(0));
  CHECK_FALSE(logger.wants_batch_logs(1));
  ProgressLogger validation({.verbose = 1}, true);
  validation.on_train_begin();
  validation.on_test_begin();
  CHECK_FALSE(validation.wants_batch_logs(0));
  ProgressLogger evaluation({.verbose = 1}, true);
  evaluation.on_test_begin();
  CHECK(evaluation.wants_batch_logs(0));
}

TEST_CASE("the bar reads nothing where it shows nothing, or others would have to") {
  for (const int verbose : {0, 2}) {
    ProgressLogger logger({.verbose = verbose}, true);
    logger.on_test_begin();
    CHECK_FALSE(logger.wants_batch_logs(0));
  }
  ProgressLogger shared({.verbose = 1}, false);
  shared.on_test_begin();
  CHECK_FALSE(shared.wants_batch_logs(0));
}

TEST_CASE("only the first process shows a bar, but every one refuses a wrong verbosity") {
  const test::StandardOutput output;
  for (const bool first : {false, true}) {
    const Callback::Params params{.epochs = 2, .steps = 1, .verbose = 2, .is_first_rank = first};
    ProgressLogger logger(params, false);
    logger.set_params(params);
    logger.on_epoch_begin(0);
    CHECK(output.text() == (first ? "Epoch 1/2\n" : ""));
  }
  CHECK_THROWS_AS(ProgressLogger({.verbose = 3, .is_first_rank = false}, false), ConfigError);
}

}  // namespace progress_logger_test
