#include <tessera/framework/training/internal/recorded_calls.hpp>

#include <tessera/framework/training/capture/step_capture.hpp>
#include <tessera/framework/training/internal/training_state.hpp>

namespace tessera::detail {

StepCapture* RecordedCalls::captures() const {
  return trainer_.compiled() ? &trainer_.training_->calls : own_.get();
}

std::vector<DTensor> RecordedCalls::run(const Batch& batch,
                                        const std::function<std::vector<DTensor>()>& call) {
  if (!trainer_.compiled()) {
    if (!own_) own_ = std::make_shared<StepCapture>(make_arena());
    return own_->run(trainer_.layer(), batch, {}, 0, /*custom_step=*/true, call);
  }
  // compile() in `call` or between two calls replaces the state.
  const std::shared_ptr<TrainingState> state = trainer_.training_;
  return state->calls.run(trainer_.layer(), batch, state->options, state->steps(),
                          /*custom_step=*/true, call);
}

StepRecords RecordedCalls::records() const {
  const StepCapture* const all = captures();
  return all ? all->records() : StepRecords();
}

}  // namespace tessera::detail
