#include <tessera/framework/training/internal/step_runner.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/wait_policy.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/cluster/internal/rank_text.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/nn/internal/random_stream.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/training/internal/non_finite.hpp>
#include <tessera/framework/training/pipeline/pipelined_steps.hpp>

namespace tessera::detail {
namespace {

/// Returns " (the partial sum of rank 1)": the ranks with a partial sum of the loss that is not
/// finite; empty if these are all ranks or none. Collective.
std::string non_finite_ranks(const Mesh& mesh, const Blocks& blocks) {
  if (mesh.is_local()) return "";
  const bool non_finite_here =
      std::any_of(blocks.begin(), blocks.end(), [](const at::Tensor& block) {
        return block.defined() && !at::isfinite(block).all().item<bool>();
      });
  const auto answers =
      communicator_of(mesh).gather("loss is finite", non_finite_here ? "no" : "yes");
  std::vector<int> ranks;
  for (size_t r = 0; r < answers.size(); ++r) {
    if (answers[r] == "no") ranks.push_back(static_cast<int>(r));
  }
  if (ranks.empty() || ranks.size() == answers.size()) return "";
  return str(" (the partial sum of ", rank_names(ranks), ")");
}

/// Leaves out the sign of NaN, which means nothing.
std::string loss_text(double loss) { return std::isnan(loss) ? "nan" : str(loss); }

}  // namespace

std::shared_ptr<RandomStream> random_stream(const TrainingState& state) {
  return std::make_shared<RandomStream>(global_seed(), state.steps());
}

StepScope::StepScope(TrainingState& state)
    : context_{.random = random_stream(state)},
      random_(state.step_random, context_.random),
      in_step_(thread_state().call_context, &context_) {}

double read_loss(const DTensor& loss) { return resolved_loss(loss).full().item<double>(); }

DTensor resolved_loss(const DTensor& loss) {
  const ProfileSpan span(SpanKind::metrics, "read loss");
  check_one_number(loss);
  return relayout_value(loss, Layout::replicated(loss.mesh(), loss.rank()));
}

void check_finite(double loss, const FitPosition& at, const Mesh& mesh, const Blocks& blocks) {
  if (std::isfinite(loss)) return;
  const std::string position = position_text(Phase::train, at.epoch, at.step + 1);
  throw StateError("fit", "the loss stays finite",
                   str(loss_text(loss), position, non_finite_ranks(mesh, blocks)),
                   "lower the learning rate, or look for bad values in the data");
}

Batch StepRunner::prepare(Examples&& examples, uint64_t signature) {
  adapt_wait_policy();
  communicator_of(state_.layouts.mesh()).begin_step(state_.exchange.count_step(), signature);
  trainer_.layer().clear_losses();
  if (state_.pipeline) return state_.pipeline->pack(std::move(examples));
  return pack_batch(std::move(examples), state_.layouts);
}

DTensor StepRunner::pipelined_train_step(const Batch& batch) {
  return state_.pipeline->run(Phase::train, batch, state_.steps(), [&](const Batch& planned) {
    state_.ran_own_step = false;
    std::vector<DTensor> results = {
        state_.metrics.take(trainer_.train_step(planned), planned.rows)};
    if (state_.ran_own_step || state_.options.record_steps == true) return results;
    throw ConfigError("pipeline", "a train_step() of one's own is recorded only with record_steps",
                      "a class that overrides train_step()",
                      "set record_steps in compile(), if the step consists of operations alone");
  })[0];
}

DTensor StepRunner::train_step(const Batch& batch) {
  const auto run = [&] {
    const StepScope step(state_);
    return std::vector{state_.metrics.take(trainer_.train_step(batch), batch.rows)};
  };
  try {
    if (state_.pipeline) {
      const StepScope step(state_);
      return pipelined_train_step(batch);
    }
    if (state_.options.record_steps != true) return run()[0];
    return state_.captures.of(Phase::train)
        .run(trainer_.layer(), batch, state_.options, state_.steps(), true, run)[0];
  } catch (const NonFiniteLoss& error) {
    const FitPosition& at = state_.progress.position;
    const std::string& devices = error.devices();
    throw StateError(
        "fit", "the loss stays finite",
        str(loss_text(error.loss()), position_text(Phase::train, at.epoch, at.step + 1),
            devices.empty() ? "" : " in the partial sum of " + devices, ": ",
            source_of_non_finite(trainer_.layer(), batch)),
        "lower the learning rate, or look for bad values in the data");
  }
}

void StepRunner::train(Examples&& examples, uint64_t signature,
                       std::function<void(double)> on_loss) {
  const DefaultMeshScope mesh(state_.layouts.mesh());
  const Batch batch = prepare(std::move(examples), signature);
  state_.captures.release_weights();
  state_.calls.release_weights();
  // With record_steps, the train_step() of any class is captured, not only the stock one.
  const DTensor loss = train_step(batch);
  ++state_.own_steps;
  // Taken before the loss is resolved: partial sums show which rank has a bad one.
  const Blocks& blocks = loss.blocks();
  const FitPosition at = state_.progress.position;
  const auto read = [&state = state_, blocks, at, rows = batch.rows,
                     on_loss = std::move(on_loss)](double value) {
    if (state.finite.loss) check_finite(value, at, state.layouts.mesh(), blocks);
    state.metrics.add_loss(value, rows);
    if (on_loss) on_loss(value);
  };
  state_.losses.push(resolved_loss(loss), read);
  state_.losses.drain_ready();
}

void StepRunner::test(Examples&& examples, uint64_t signature) {
  const DefaultMeshScope mesh(state_.layouts.mesh());
  const Batch batch = prepare(std::move(examples), signature);
  const auto step = [&](const Batch& rows) {
    return std::vector{state_.metrics.take(trainer_.test_step(rows), rows.rows)};
  };
  const DTensor loss = state_.pipeline
                           ? state_.pipeline->run(Phase::test, batch, state_.steps(), step)[0]
                           : step(batch)[0];
  state_.losses.push(resolved_loss(loss), [&metrics = state_.metrics, rows = batch.rows](
                                              double value) { metrics.add_loss(value, rows); });
  state_.losses.drain_ready();
}

std::vector<at::Tensor> StepRunner::predict(Examples&& examples, uint64_t signature) {
  const DefaultMeshScope mesh(state_.layouts.mesh());
  std::vector<at::Tensor> outputs;
  const Batch batch = prepare(std::move(examples), signature);
  const auto step = [&](const Batch& rows) { return trainer_.predict_step(rows); };
  const std::vector<DTensor> results =
      state_.pipeline ? state_.pipeline->run(Phase::predict, batch, state_.steps(), step)
                      : step(batch);
  for (const DTensor& output : results) outputs.push_back(output.full());
  return outputs;
}

}  // namespace tessera::detail
