#include <tessera/framework/training/callbacks/internal/progress_logger.hpp>

#include <chrono>
#include <regex>
#include <thread>

#include <tessera/framework/base/error.hpp>
#include <tessera/tessera.hpp>

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

TEST_CASE("the bar reads nothing if it shows nothing or reading would involve other processes") {
  for (const int verbose : {0, 2}) {
    ProgressLogger logger({.verbose = verbose}, true);
    logger.on_test_begin();
    CHECK_FALSE(logger.wants_batch_logs(0));
  }
  ProgressLogger shared({.verbose = 1}, false);
  shared.on_test_begin();
  CHECK_FALSE(shared.wants_batch_logs(0));
}

TEST_CASE("only the first process shows a bar, but every one refuses an invalid verbosity") {
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

TEST_CASE("a resumed run counts only its own steps in their time") {
  const test::StandardOutput output;
  const Callback::Params params{.steps = 1000, .verbose = 2};
  ProgressLogger logger(params, false);
  logger.set_params(params);
  logger.on_epoch_begin(0);
  logger.on_train_batch_begin(999);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  logger.on_train_batch_end(999, {});
  Logs none;
  logger.on_epoch_end(0, none);
  CHECK(std::regex_match(output.text(), std::regex(R"(1000/1000 - \ds - \d+m?s/step\n)")));
}

TEST_CASE("training, evaluation and prediction report the rows of their batches") {
  const test::StandardOutput output;
  const Sequential model({Input({3}), Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const at::Tensor x = at::ones({10, 3}), y = at::ones({10, 1});
  model.fit({x, y}, {.batch_size = 4, .verbose = 2, .validation_data = {x, y}});
  model.evaluate({x, y}, {.batch_size = 4, .verbose = 2});
  model.predict(x, {.batch_size = 4, .verbose = 2});
  const std::string line = R"(3/3 - \d+s - \d+.?s/step - [\d.]+[kM]? rows/s)";
  INFO(output.text());
  CHECK(std::regex_match(output.text(), std::regex(line + " - loss: .* - val_loss: .*\n" + line +
                                                   " - loss: .*\n" + line + "\n")));
}

}  // namespace progress_logger_test
