#include <tessera/framework/training/internal/batch_loop.hpp>

#include <string_view>
#include <utility>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/nn/optimizer/internal/gradient_reducer.hpp>

namespace tessera::detail {
namespace {

std::string_view name_of(Phase phase) {
  if (phase == Phase::train) return "train";
  return phase == Phase::test ? "test" : "predict";
}

}  // namespace

void BatchLoop::run(BatchLoader& loader,
                    const std::function<void(Examples&&, int64_t)>& step) {
  int64_t number = loader.first_step();
  std::optional<Examples> examples = next_batch(loader, number, [] {});
  for (; examples; ++number) {
    const ProfileSpan span(SpanKind::step, name_of(phase_));
    callbacks_.batch_begin(phase_, number);
    step(std::move(*examples), number);
    const bool all = callbacks_.wants_batch_logs(phase_, number);
    const Logs values =
        all ? state_.metrics.logs() : Logs{{"loss", state_.metrics.loss().value()}};
    if (phase_ == Phase::train && callbacks_.hears_train_batches()) check_gradients(number + 1);
    examples = next_batch(loader, number + 1,
                          [&] { callbacks_.batch_end(phase_, number, values); });
    if (phase_ == Phase::train && state_.exchange.stops()) return;
  }
}

/// The batch of a step, once `before` is done on every process; nothing after the last.
std::optional<Examples> BatchLoop::next_batch(BatchLoader& loader, int64_t step,
                                              const std::function<void()>& before) {
  return state_.exchange.next_batch(
      caller_, phase_, {state_.progress.position.epoch, step}, [&](StepStatus& own) {
        before();
        std::optional<Examples> examples = loader.next();
        if (const int signal = stop_signal()) own.raise(StatusLevel::save, std::to_string(signal));
        if (phase_ == Phase::train) raise_non_finite(own);
        return examples;
      });
}

/// Raises the step's gradients that are not finite, if they must be.
void BatchLoop::raise_non_finite(StepStatus& own) const {
  if (!state_.gradients_must_be_finite || !state_.optimizer()) return;
  const std::string variable = state_.optimizer()->reducer().take_non_finite();
  if (!variable.empty()) own.raise(StatusLevel::non_finite, variable);
}

/// The same on every process before a callback may save weights that such gradients have spoilt.
/// Collective.
void BatchLoop::check_gradients(int64_t step) {
  // On a mesh that one process holds nobody looks at them.
  if (state_.layouts.mesh().is_local() || !state_.gradients_must_be_finite) return;
  const StepStatus status =
      state_.exchange.exchange([&](StepStatus& own) { raise_non_finite(own); });
  state_.exchange.check(caller_, Phase::train, {state_.progress.position.epoch, step}, status);
}

}  // namespace tessera::detail
