#include <tessera/framework/training/internal/local_steps.hpp>

#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/internal/batch_loop.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/row_errors.hpp>

namespace tessera::detail {
namespace {

constexpr const char* validation = "fit, validation";

}  // namespace

void test_batches(const std::string& caller, StepRunner& steps, TrainingState& state,
                  BatchLoader& loader, const CallbackList& callbacks,
                  const std::optional<int64_t>& asked_for) {
  BatchLoop batches(caller, Phase::test, state, callbacks, loader, asked_for);
  while (std::optional<Examples> examples = batches.next()) {
    try {
      steps.test(std::move(*examples), batches.signature());
    } catch (const Error&) {
      rethrow_with_row(loader, batches.step(), state.layouts.mesh(),
                       caller == validation ? "the validation data" : "the data");
    }
  }
}

void LocalSteps::train(const FitRun& run) {
  TrainingState& state = run.state;
  FitProgress& progress = state.progress;
  const FitPosition begin = progress.position;
  BatchLoader loader(run.data.train, training_batches(run.options, begin, state.layouts));
  BatchLoop batches("fit", Phase::train, state, run.callbacks, loader, run.options.steps_per_epoch,
                    begin.step);
  StepRunner steps(run.trainer, state);
  while (std::optional<Examples> examples = batches.next()) {
    try {
      steps.train(std::move(*examples), batches.signature(),
                  [&progress](double loss) { progress.history.steps.push_back(loss); });
    } catch (const Error&) {
      rethrow_with_row(loader, first_batch(begin) + batches.step(), state.layouts.mesh(),
                       "the data");
    }
    const int64_t done = batches.step() + 1;
    progress.position = {begin.epoch, done, begin.pass.value_or(begin.epoch),
                         first_batch(begin) + done};
  }
}

void LocalSteps::test(const FitRun& run) {
  BatchLoader loader(run.data.validation, validation_batches(run.options, run.state.layouts));
  StepRunner steps(run.trainer, run.state);
  test_batches(validation, steps, run.state, loader, run.callbacks, run.options.validation_steps);
}

}  // namespace tessera::detail
