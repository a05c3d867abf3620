#include <tessera/framework/training/trainer.hpp>

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/nn/internal/placed_values.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/training/internal/batch_loop.hpp>
#include <tessera/framework/training/internal/compiled_scope.hpp>
#include <tessera/framework/training/internal/data_views.hpp>
#include <tessera/framework/training/internal/elastic_fit.hpp>
#include <tessera/framework/training/internal/first_step.hpp>
#include <tessera/framework/training/internal/fit_data.hpp>
#include <tessera/framework/training/internal/fit_loop.hpp>
#include <tessera/framework/training/internal/local_steps.hpp>
#include <tessera/framework/training/internal/plan_step.hpp>
#include <tessera/framework/training/internal/run_fingerprint.hpp>
#include <tessera/framework/training/internal/step_runner.hpp>
#include <tessera/framework/training/internal/training_state.hpp>
#include <tessera/framework/training/pipeline/pipelined_steps.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns all rows of a batch, checked and copied to memory that nobody else holds.
Examples copied(const Examples& batch, const std::string& caller) {
  const DatasetHandle data(batch);
  check_data(caller, data);
  return all_rows(data);
}

/// Returns the array of each name, in the order of `names`.
std::vector<at::Tensor> by_name(const NamedArrays& arrays, const std::vector<std::string>& names,
                                const std::string& where) {
  const auto known = quoted_list(names);
  if (names.empty()) {
    throw ConfigError(where, "named arrays need a model with names for its inputs",
                      "a model without input names", "pass arrays in order");
  }
  std::vector<at::Tensor> ordered(names.size());
  for (const auto& [name, array] : arrays) {
    const auto index = std::find(names.begin(), names.end(), name) - names.begin();
    if (index == std::ssize(names)) {
      throw ConfigError(where, "the model has " + known, in_quotes(name), suggestion(name, names));
    }
    if (ordered[size_t(index)].defined()) {
      throw ConfigError(where, "each name appears once", in_quotes(name) + " twice",
                        "leave one out");
    }
    if (!array.defined()) {
      throw ConfigError(where, "each name has a tensor", in_quotes(name) + " without one",
                        "pass a tensor");
    }
    ordered[size_t(index)] = array;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (ordered[i].defined()) continue;
    throw ConfigError(where, "the model has " + known, "no " + in_quotes(names[i]), "pass it too");
  }
  return ordered;
}

Examples named_examples(const NamedArrays& x, const at::Tensor& y,
                        const std::vector<std::string>& names, const std::string& caller) {
  Examples all;
  all.x = by_name(x, names, caller + ", x");
  if (y.defined()) all.y = {y};
  return all;
}

std::vector<at::Tensor> predicted(StepRunner& steps, TrainingState& state, BatchLoader& loader,
                                  const CallbackList& callbacks,
                                  const std::optional<int64_t>& asked_for) {
  std::vector<std::vector<at::Tensor>> by_output;
  state.exchange.do_on_all_ranks([&] { callbacks.begin(Phase::predict); });
  BatchLoop batches("predict", Phase::predict, state, callbacks, loader, asked_for);
  while (std::optional<Examples> examples = batches.next()) {
    std::vector<at::Tensor> outputs = steps.predict(std::move(*examples), batches.signature());
    by_output.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) by_output[i].push_back(std::move(outputs[i]));
  }
  state.exchange.do_on_all_ranks([&] { callbacks.end(Phase::predict, {}); });
  std::vector<at::Tensor> joined;
  for (const auto& output : by_output) joined.push_back(at::cat(output));
  return joined;
}

CompileOptions with_loss_scale(CompileOptions options, const DTypePolicy& policy) {
  const bool scales = options.auto_scale_loss && policy == dtype_policy("mixed_float16");
  if (scales && options.optimizer && !options.optimizer->scales_loss()) {
    options.optimizer = loss_scaler()(options.optimizer);
  }
  return options;
}

}  // namespace

Trainer::Trainer(Layer& layer, Model& model) : layer_(layer), model_(model) {}
Trainer::~Trainer() = default;

void Trainer::fail_uncompiled(const char* caller) {
  throw StateError(caller, "the model is compiled", "a model without compile()",
                   "call compile() with an optimizer and a loss first");
}

void Trainer::compile(const CompileOptions& user_options) {
  const CompileOptions options = with_loss_scale(user_options, layer_.dtype_policy());
  LayoutMap layouts = options.layouts;
  if (!layouts.defined()) {
    layouts = LayoutMap(options.mesh.defined() ? options.mesh : default_mesh());
  }
  layouts.set_data_names(input_names(), output_names());
  for (const RematRule& rule : options.remat) layouts.rematerialize(rule);
  if (options.world_size_invariant) layouts.set_world_size_invariant(true);
  auto state = std::make_shared<TrainingState>(options, layouts, layer_);
  state->user_optimizer = user_options.optimizer;
  // A subclassed model knows its number of outputs only when it is called.
  if (output_names().size() > 1) MetricTracker::check_names(options, output_names());
  training_ = state;
  if (layer_.built()) ensure_placed(Shapes());
}

/// Builds the model for these inputs if necessary, then relayouts weights and slots.
void Trainer::ensure_placed(const Shapes& inputs) {
  TrainingState& state = training("compile");
  if (state.placed) return;
  const CompiledScope scope(layer_, state);
  if (!layer_.built()) {
    layer_.build(inputs);
    if (state.placed) return;
  }
  state.layouts.check_all_used(place_layers(layer_, state.layouts));
  warn_of_replicated_weights(layer_, state.layouts);
  if (state.optimizer()) {
    check_optimizer(layer_, *state.optimizer());
    state.optimizer()->build(layer_.trainable_weights());
  }
  if (state.layouts.pipeline()) {
    state.pipeline = std::make_shared<PipelinedSteps>(layer_, state.layouts, state.optimizer());
  }
  state.placed = true;
}

void Trainer::ensure_placed(const DatasetHandle& data) {
  const ScopedValue<const DatasetHandle*> building(training("compile").building_data, &data);
  ensure_placed(batch_shapes(data));
}

bool Trainer::build_by_step() {
  if (!compiled() || !training_->building_data) return false;
  const DatasetHandle& data = *training_->building_data;
  const std::vector<int64_t> first = {0};
  const Examples sample =
      data.stream() ? data.stream()->start(0)().value_or(Examples()) : data->get(first);
  constexpr int64_t rows = 2;
  {
    // A step that calls the model itself does not build it.
    const ScopedValue<const DatasetHandle*> once(training_->building_data, nullptr);
    const AbstractScope plans_only(training_->layouts.mesh());
    const StepScope step(*training_);
    train_step(abstract_batch(sample, training_->layouts, rows));
  }
  layer_.clear_losses();
  return true;
}

void Trainer::place_if_compiled() {
  if (compiled() && layer_.built() && !is_abstract()) ensure_placed(Shapes());
}

void Trainer::place_replaced_weights() {
  if (!compiled() || !training_->placed) return;
  const CompiledScope scope(layer_, *training_);
  place_layers(layer_, training_->layouts);
  if (training_->pipeline) training_->pipeline->place_weights();
}

History Trainer::fit(const DatasetHandle& dataset, const FitOptions& options) {
  training("fit");
  // A callback may compile the model again.
  const std::shared_ptr<TrainingState> state = training_;
  const CompiledScope scope(layer_, *state);
  const Mesh& mesh = state->layouts.mesh();
  return reporting_failure(mesh, [&] {
    const FitData data = fit_data(dataset, options, state->options, output_names());
    RunFingerprint facts;
    const bool elastic = ElasticRun::current() != nullptr;
    if (elastic || !mesh.is_local()) {
      facts = run_fingerprint(layer_, state->options, state->layouts, options.callbacks);
      add_fit(facts, data, options);
    }
    // The processes of an elastic run compare them whenever they meet.
    if (!elastic) check_same_on_all_ranks(mesh, "fit", facts);
    if (!state->placed) ensure_placed(data.train);
    double flops_per_row = 0;
    if (options.memory_limit > 0 || options.peak_flops) {
      const PlanOptions step{.batch_size = options.batch_size,
                             .memory_limit = options.memory_limit};
      flops_per_row = plan(data.train, step).flops / static_cast<double>(options.batch_size);
    }
    if (const auto history = state->executor->work_for_leader(*this, data, options)) {
      return state->progress.history = *history;
    }
    const auto steps = told_steps(data.train, training_batches(options));
    const CallbackList callbacks(
        options.callbacks, *this, mesh,
        {.epochs = options.epochs, .steps = steps, .verbose = options.verbose});
    const FitRun run{*this, *state, data, options, callbacks, flops_per_row};
    const std::unique_ptr<ElasticFit> coming_and_going = ElasticFit::make(run, std::move(facts));
    FitLoop(run).run();
    return state->progress.history;
  });
}

History Trainer::fit(const at::Tensor& x, const at::Tensor& y, const FitOptions& options) {
  return fit(DatasetHandle(x, y), options);
}

Examples Trainer::examples(const NamedArrays& x, const at::Tensor& y) const {
  return named_examples(x, y, input_names(), "examples");
}

History Trainer::fit(const NamedArrays& x, const at::Tensor& y, const FitOptions& options) {
  return fit(named_examples(x, y, input_names(), "fit"), options);
}

History Trainer::fit(const NamedArrays& x, const NamedArrays& y, const FitOptions& options) {
  Examples all = named_examples(x, {}, input_names(), "fit");
  all.y = by_name(y, output_names(), "fit, y");
  return fit(all, options);
}

/// Runs `pass`, the body of evaluate or predict, after checking that all processes do the same and
/// placing the weights. Throws ConfigError if processes differ.
template <class Options, class Pass>
auto Trainer::pass_over(const std::string& caller, const DatasetHandle& dataset,
                        const Options& options, const Pass& pass) {
  // A callback may compile the model again.
  const std::shared_ptr<TrainingState> state = training_;
  const CompiledScope scope(layer_, *state);
  const Mesh& mesh = state->layouts.mesh();
  return reporting_failure(mesh, [&] {
    check_passes(caller, dataset, options);
    DatasetHandle data = dataset;
    if constexpr (requires { options.sample_weight; }) {
      if (options.sample_weight.defined()) {
        data = with_sample_weight(dataset, options.sample_weight, caller);
      }
    }
    const BatchLoaderOptions batches{
        .batch_size = options.batch_size, .steps = options.steps, .layouts = state->layouts};
    const CallbackList callbacks(options.callbacks, *this, mesh,
                                 {.steps = told_steps(data, batches), .verbose = options.verbose});
    if (!mesh.is_local()) {
      RunFingerprint facts =
          run_fingerprint(layer_, state->options, state->layouts, options.callbacks);
      add_batches(facts, data, options.batch_size, options.steps);
      check_same_on_all_ranks(mesh, caller, facts);
    }
    if (!state->placed) ensure_placed(data);
    BatchLoader loader(data, batches);
    StepRunner steps(*this, *state);
    return pass(steps, *state, loader, callbacks, options.steps);
  });
}

Logs Trainer::evaluate(const DatasetHandle& data, const EvaluateOptions& options) {
  training("evaluate");
  return pass_over("evaluate", data, options,
                   [](StepRunner& steps, TrainingState& state, BatchLoader& loader,
                      const CallbackList& callbacks, const std::optional<int64_t>& asked_for) {
                     return evaluated(state, callbacks, [&] {
                       test_batches("evaluate", steps, state, loader, callbacks, asked_for);
                     });
                   });
}

Logs Trainer::evaluate(const at::Tensor& x, const at::Tensor& y, const EvaluateOptions& options) {
  return evaluate(DatasetHandle(x, y), options);
}

Logs Trainer::evaluate(const NamedArrays& x, const at::Tensor& y, const EvaluateOptions& options) {
  return evaluate(named_examples(x, y, input_names(), "evaluate"), options);
}

Logs Trainer::evaluate(const NamedArrays& x, const NamedArrays& y, const EvaluateOptions& options) {
  Examples all = named_examples(x, {}, input_names(), "evaluate");
  all.y = by_name(y, output_names(), "evaluate, y");
  return evaluate(all, options);
}

at::Tensor Trainer::predict(const NamedArrays& x, const PredictOptions& options) {
  return predict(named_examples(x, {}, input_names(), "predict"), options);
}

std::vector<at::Tensor> Trainer::predict_all(const DatasetHandle& data,
                                             const PredictOptions& options) {
  if (!compiled()) compile(CompileOptions());
  return pass_over("predict", data, options, predicted);
}

at::Tensor Trainer::predict(const DatasetHandle& data, const PredictOptions& options) {
  const std::vector<at::Tensor> outputs = predict_all(data, options);
  if (outputs.size() == 1) return outputs[0];
  throw ConfigError("predict", "the model has one output", str(outputs.size(), " outputs"),
                    "use predict_all()");
}

Logs Trainer::train_on_batch(const Examples& batch) {
  TrainingState& state = training("train_on_batch");
  const CompiledScope scope(layer_, state);
  Examples examples = copied(batch, "train_on_batch");
  if (!state.placed) ensure_placed(DatasetHandle(batch));
  const uint64_t signature = batch_signature(examples);
  state.reset_values();
  StepRunner(*this, state).train(std::move(examples), signature);
  state.losses.drain();
  return state.metrics.logs();
}

Logs Trainer::test_on_batch(const Examples& batch) {
  TrainingState& state = training("test_on_batch");
  const CompiledScope scope(layer_, state);
  Examples examples = copied(batch, "test_on_batch");
  if (!state.placed) ensure_placed(DatasetHandle(batch));
  const uint64_t signature = batch_signature(examples);
  state.reset_values();
  StepRunner(*this, state).test(std::move(examples), signature);
  state.losses.drain();
  return state.metrics.logs();
}

std::vector<at::Tensor> Trainer::predict_on_batch(const Examples& batch) {
  if (!compiled()) compile(CompileOptions());
  TrainingState& state = training("predict_on_batch");
  const CompiledScope scope(layer_, state);
  Examples examples = copied(batch, "predict_on_batch");
  if (!state.placed) ensure_placed(DatasetHandle(batch));
  const uint64_t signature = batch_signature(examples);
  return StepRunner(*this, state).predict(std::move(examples), signature);
}

StepPlan Trainer::plan(const DatasetHandle& data, const PlanOptions& options) {
  TrainingState& state = training("plan");
  const CompiledScope scope(layer_, state);
  check_positive("plan", "batch_size", options.batch_size);
  check_data("plan", data);
  const auto rows = data.rows("plan");
  ensure_placed(data);
  // Metrics are stored on the real mesh, not on the abstract one.
  state.metrics.reset();
  const std::vector<int64_t> first = {0};
  if (state.pipeline) {
    if (options.memory_limit > 0) {
      throw ConfigError("plan", "a memory_limit is for models without stages",
                        describe(*state.layouts.pipeline()), "leave memory_limit out");
    }
    const auto step = [this](const Batch& batch) { return std::vector{train_step(batch).loss()}; };
    const PipelinedSteps::Plan planned =
        state.pipeline->plan(rows->get(first), options.batch_size, step);
    state.metrics.reset();
    StepPlan plan = plan_weights(layer_, state.optimizer(), state.layouts.mesh());
    plan.pipeline = planned.text;
    plan.flops = planned.flops;
    return plan;
  }
  const auto make_batch = [&] {
    return abstract_batch(rows->get(first), state.layouts, options.batch_size);
  };
  StepPlan plan =
      plan_step(layer_, state.optimizer(), state.layouts, make_batch, options.memory_limit,
                [this](const Batch& batch) { return train_step(batch).loss(); });
  state.metrics.reset();
  return plan;
}

void Trainer::reset_metrics() { training("reset_metrics").metrics.reset(); }

const StepRecords& Trainer::step_records() const {
  return training("step_records").captures.of(Phase::train).records();
}
const StepRecords& Trainer::test_step_records() const {
  return training("test_step_records").captures.of(Phase::test).records();
}
const StepRecords& Trainer::predict_step_records() const {
  return training("predict_step_records").captures.of(Phase::predict).records();
}

bool Trainer::stop_training() const { return training("stop_training").exchange.stops(); }
void Trainer::set_stop_training(bool stop) {
  training("set_stop_training").exchange.set_stop(stop);
}

FitPosition Trainer::fit_position() const { return training("fit_position").progress.position; }

void Trainer::set_fit_position(const FitPosition& position) {
  if (position.epoch < 0 || position.step < 0 || position.pass.value_or(0) < 0 ||
      first_batch(position) < 0) {
    throw ConfigError("set_fit_position", "epoch and step are counted from 0",
                      str("epoch ", position.epoch, ", step ", position.step),
                      "pass a result of fit_position()");
  }
  training("set_fit_position").progress.position = position;
}

History Trainer::history() const {
  TrainingState& state = training("history");
  const WorldSizeInvariantScope scope(state.layouts.world_size_invariant());
  state.losses.drain();
  const FitProgress& progress = state.progress;
  History history = progress.history;
  if (progress.epoch_ends) history.append(progress.position.epoch - 1, progress.epoch_logs);
  return history;
}

void Trainer::set_history(const History& history) {
  training("set_history").progress.history = history;
}

Json Trainer::metric_totals() const {
  TrainingState& state = training("metric_totals");
  const WorldSizeInvariantScope scope(state.layouts.world_size_invariant());
  state.losses.drain();
  return state.metrics.totals();
}

std::map<std::string, DTensor> Trainer::metric_sums() const {
  TrainingState& state = training("metric_sums");
  state.losses.drain();
  return state.metrics.sums();
}

void Trainer::restore_metric_totals(const Json& totals, std::map<std::string, DTensor> sums) {
  training("restore_metric_totals").metrics.set_restored(totals, std::move(sums));
}

CompileOptions Trainer::compile_options() const {
  const TrainingState& state = training("compile_options");
  CompileOptions options = state.options;
  options.optimizer = state.user_optimizer;
  return options;
}

const OptimizerHandle& Trainer::optimizer() const { return training("optimizer").optimizer(); }

std::vector<std::pair<std::string, std::shared_ptr<Metric>>> Trainer::metrics() const {
  return training("metrics").metrics.metrics();
}

std::vector<std::string> Trainer::metrics_names() const {
  const MetricTracker& tracker = training("metrics_names").metrics;
  std::vector<std::string> names;
  if (tracker.logs_loss()) names.push_back("loss");
  for (const auto& [name, metric] : tracker.metrics()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tessera
