#include <tessera/framework/training/internal/batch_loop.hpp>

#include <iostream>
#include <string_view>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/cluster/stop_signal.hpp>
#include <tessera/framework/comm/internal/collectively.hpp>
#include <tessera/framework/optimizer/internal/gradient_reducer.hpp>
#include <tessera/framework/training/internal/elastic_fit.hpp>

namespace tessera::detail {
namespace {

std::string_view name_of(Phase phase) {
  if (phase == Phase::train) return "train";
  return phase == Phase::test ? "test" : "predict";
}

}  // namespace

void warn_of_short_data(const Mesh& mesh, const std::string& caller, const std::string& option,
                        int64_t done, const std::optional<int64_t>& steps) {
  if (!steps || done >= *steps) return;
  warn_once(mesh, str(caller, ": the data ran out after ", done, " of ", *steps, " steps: lower ",
                      option, ", or repeat() the data"));
}

std::optional<Examples> BatchLoop::next() {
  const bool trains = phase_ == Phase::train;
  const bool ends_step = step_span_.has_value();
  Logs values;
  if (ends_step) {
    const bool all = callbacks_.wants_batch_logs(phase_, step_);
    if (all) state_.losses.drain();
    values = all ? state_.metrics.logs() : Logs{{"loss", state_.metrics.loss().value()}};
    ++step_;
    if (trains && callbacks_.overrides_train_batch_end()) check_gradients();
  }
  std::optional<Examples> examples;
  const StepStatus status = state_.exchange.exchange([&](StepStatus& own) {
    if (ends_step) callbacks_.batch_end(phase_, step_ - 1, rows_, values);
    examples = loader_.next();
    if (state_.elastic) {
      if (trains) state_.elastic->raise_change(own);
    } else if (const int signal = stop_signal()) {
      own.raise(StatusLevel::save, std::to_string(signal));
    }
    if (trains) raise_non_finite(own, /*all=*/!examples);
    signature_ = examples ? batch_signature(*examples) : 0;
    own.set_next_batch(examples ? examples->rows() : 0, signature_);
  });
  state_.exchange.check(caller_, phase_, {state_.progress.position.epoch, step_}, status);
  if (status.status() == StatusLevel::regroup) state_.elastic->regroup();
  const bool more = all_have_more(status, examples);
  step_span_.reset();
  if (!more) warn_of_early_end();
  if (!more || (ends_step && trains && state_.exchange.stops())) {
    state_.losses.drain();
    return std::nullopt;
  }
  if (trains && state_.elastic) state_.elastic->between_steps();
  rows_ = examples->rows();
  step_span_.emplace(SpanKind::step, name_of(phase_));
  callbacks_.batch_begin(phase_, step_);
  return examples;
}

/// Warns if fewer steps are done than the user asked for.
void BatchLoop::warn_of_early_end() const {
  // Without any step, the pass over the data ended with the epoch before, and the next one begins.
  if (step_ == 0 && loader_.first_step() > 0) return;
  const char* option = phase_ == Phase::train         ? "steps_per_epoch"
                       : caller_ == "fit, validation" ? "validation_steps"
                                                      : "steps";
  warn_of_short_data(state_.layouts.mesh(), caller_, option, step_, steps_);
}

/// Whether every process has a batch for the next step, with the same signature. Collective.
bool BatchLoop::all_have_more(const StepStatus& status,
                              const std::optional<Examples>& examples) const {
  if (status.same_signature()) return status.max_rows() > 0;
  const Mesh& mesh = state_.layouts.mesh();
  const bool ends = status.min_rows() == 0;
  const std::string text = !examples ? "no more" : ends ? "more" : batch_text(*examples);
  const std::string by_rank = group_by_text(communicator_of(mesh).gather("batch", text));
  if (!ends) {
    throw ShapeError(caller_, "all processes have batches of the same shapes and dtypes",
                     str(by_rank, ", at step ", step_ + 1),
                     "give every process the same data, with shapes that do not depend on the "
                     "rows that are read");
  }
  if (is_first_rank(mesh)) {
    std::cerr << "Warning: " << caller_ << ": the data do not end together (" << by_rank
              << ", after step " << step_ << "): the epoch ends for all\n";
  }
  return false;
}

/// Raises the status if gradients of the step must be finite and are not.
void BatchLoop::raise_non_finite(StepStatus& own, bool all) const {
  if (!state_.finite.gradients || !state_.optimizer()) return;
  const std::string variable = state_.optimizer()->reducer().take_non_finite(all);
  if (!variable.empty()) own.raise(StatusLevel::non_finite, variable);
}

/// Throws for non-finite gradients on every process, before a callback can save weights that they
/// have corrupted. Collective.
void BatchLoop::check_gradients() {
  // On a mesh of one process, gradients are not checked.
  if (state_.layouts.mesh().is_local() || !state_.finite.gradients) return;
  const StepStatus status =
      state_.exchange.exchange([&](StepStatus& own) { raise_non_finite(own, /*all=*/true); });
  state_.exchange.check(caller_, Phase::train, {state_.progress.position.epoch, step_}, status);
}

}  // namespace tessera::detail
