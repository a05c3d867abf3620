#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/own_class.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/cluster/rank_text.hpp>
#include <tessera/framework/comm/communicator.hpp>
#include <tessera/framework/comm/status.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/tracer.hpp>
#include <tessera/framework/training/callbacks/learning_rate_access.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

/// The weights of an output's samples; undefined if there are none.
DTensor weights_of(const Batch& batch, size_t output) {
  const std::vector<DTensor>& weights = batch.sample_weight;
  if (weights.empty()) return {};
  if (weights.size() == 1) return weights[0];
  if (weights.size() == batch.y.size()) return weights[output];
  throw ConfigError("fit", "sample weights are for all outputs, or for each",
                    str(weights.size(), " of them for ", batch.y.size(), " outputs"),
                    "give one, or one for each output");
}

void check_number(const DTensor& loss) {
  if (loss.numel() == 1) return;
  throw ShapeError("loss", "a step's loss is one number", to_string(loss.shape()),
                   "reduce it: sum_over_batch_size or sum");
}

/// " (the part of rank 1)", for a loss whose addends are not all finite; empty where that tells
/// nothing, since all ranks have such ones or none has. Collective.
std::string culprits(const Mesh& mesh, const Blocks& parts) {
  if (mesh.is_local()) return "";
  const bool here = std::any_of(parts.begin(), parts.end(), [](const at::Tensor& part) {
    return part.defined() && !at::isfinite(part).all().item<bool>();
  });
  const auto answers = communicator_of(mesh).gather("loss is finite", here ? "no" : "yes");
  std::vector<int> ranks;
  for (size_t r = 0; r < answers.size(); ++r) {
    if (answers[r] == "no") ranks.push_back(static_cast<int>(r));
  }
  if (ranks.empty() || ranks.size() == answers.size()) return "";
  return str(" (the part of ", rank_names(ranks), ")");
}

/// Lets a step that is recorded know of code that is not Tessera's.
template <class T>
void tell_tracer(const T& used, const char* what) {
  Tracer* const hears = tracer();
  if (hears && !is_own_class(used)) hears->user_code(str(what, " ", used.class_name()));
}

}  // namespace

void LossMean::add_loss(const DTensor& loss, int64_t rows) {
  const NoRecording untaped;
  const auto count = static_cast<double>(rows);
  add(ops::reshape(ops::scale(ops::cast(loss, at::kDouble), count), {1}), {0, count});
}

double LossMean::result(const std::vector<double>& totals) const {
  return totals.size() < 2 || totals[1] == 0 ? 0 : totals[0] / totals[1];
}

CallContext Model::training_context() const {
  return {.training = true,
          .random = std::make_shared<RandomStream>(global_seed(), optimizer_of(*this).steps())};
}

DTensor Model::compute_loss(const Batch& batch, const std::vector<DTensor>& y_pred) {
  Training& state = training("compute_loss");
  state.choose(output_names(), batch, y_pred);
  DTensor total;
  const auto add = [&](const DTensor& loss) {
    total = total.defined() ? total + ops::cast(loss, total.dtype()) : loss;
  };
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    const CompiledOutput& output = state.outputs[i];
    if (!output.loss) continue;
    tell_tracer(*output.loss, "the loss");
    const DTensor loss = (*output.loss)(batch.y[i], y_pred[i], weights_of(batch, i));
    check_number(loss);
    if (output.mean) output.mean->add_loss(loss, batch.rows);
    add(output.weight == 1 ? loss : ops::scale(loss, output.weight));
  }
  for (const DTensor& loss : losses()) add(loss);
  if (total.defined()) return total;
  throw StateError("compute_loss", "the model is compiled with a loss", "no loss",
                   "name one in compile(), or call add_loss() in a layer");
}

void Model::minimize(const DTensor& loss, GradientTape& tape) {
  const std::vector<Variable> variables = trainable_weights();
  if (variables.empty()) {
    if (!weights().empty()) return;
    throw StateError("model " + path(), "a model has weights to train", "none",
                     "pass every layer that its call() uses to track()");
  }
  std::vector<DTensor> values;
  for (const Variable& variable : variables) values.push_back(variable.value());
  Optimizer& optimizer = optimizer_of(*this);
  GradientReducer& reducer = optimizer.reducer();
  reducer.set_bucket_cap_mb(training("minimize").options.bucket_cap_mb);
  const auto over = c10::make_scope_exit([&] { reducer.reset(); });
  const auto ready = std::make_shared<std::function<void(size_t, const DTensor&)>>(
      optimizer.reduce_when_ready(variables));
  const auto reduce = [&](size_t i, const DTensor& gradient) {
    if (!GradientReducer::concerns(gradient)) return;
    traced(std::span(&gradient, 1),
           [ready, i](std::span<const DTensor> in) { (*ready)(i, in[0]); });
  };
  const std::vector<DTensor> gradients =
      tape.gradient(optimizer.scale_loss(loss), values, {.on_ready = reduce});
  // Weights that nobody else holds are updated in place.
  values.clear();
  traced(gradients, [&optimizer, variables](std::span<const DTensor> in) {
    optimizer.apply({in.begin(), in.end()}, variables);
  });
}

void Model::update_metrics(const Batch& batch, const std::vector<DTensor>& y_pred) {
  Training& state = training("update_metrics");
  state.choose(output_names(), batch, y_pred);
  for (size_t i = 0; i < state.outputs.size(); ++i) {
    for (const auto& metric : state.outputs[i].metrics) {
      tell_tracer(*metric, "metric");
      metric->update(batch.y[i], y_pred[i]);
    }
    for (const auto& metric : state.outputs[i].weighted_metrics) {
      tell_tracer(*metric, "metric");
      metric->update(batch.y[i], y_pred[i], weights_of(batch, i));
    }
  }
}

DTensor Model::train_step(const Batch& batch) {
  return training("train_step").step(*this, batch, false, [&] { return stock_step(batch); });
}

DTensor Model::stock_step(const Batch& batch) {
  GradientTape tape;
  const std::vector<DTensor> y_pred = outputs(batch.x, training_context());
  const DTensor loss = compute_loss(batch, y_pred);
  minimize(loss, tape);
  update_metrics(batch, y_pred);
  return loss;
}

DTensor Model::test_step(const Batch& batch) {
  const std::vector<DTensor> y_pred = outputs(batch.x);
  const DTensor loss = compute_loss(batch, y_pred);
  update_metrics(batch, y_pred);
  return loss;
}

const StepRecords& Model::step_records() const {
  return training("step_records").recorded.records();
}

std::vector<DTensor> Model::predict_step(const Batch& batch) { return outputs(batch.x); }

Batch Model::Training::prepare(Model& model, Examples&& examples) {
  communicator_of(layouts.mesh()).begin_step(steps_begun++, hash_of(form_of(examples)));
  model.clear_losses();
  return pack_batch(std::move(examples), layouts);
}

DTensor Model::Training::step(Model& model, const Batch& batch, bool whole,
                              const std::function<DTensor()>& eager) {
  const StepCapture::Options how = {.off = options.run_eagerly || options.record_steps == false,
                                      .any_code = options.record_steps == true,
                                      .whole = whole};
  // Where a replay ends in an error.
  const auto over = c10::make_scope_exit([this] {
    if (optimizer) optimizer->reducer().reset();
  });
  return recorded.run(model, batch, optimizer ? optimizer->steps() : 0, how, eager);
}

double Model::Training::train(Model& model, Examples&& examples) {
  const Batch batch = prepare(model, std::move(examples));
  const auto by_code = [&] { return model.train_step(batch); };
  const DTensor result =
      options.record_steps == true ? step(model, batch, true, by_code) : by_code();
  // Before they are summed up: they tell whose part is at fault.
  const Blocks parts = result.blocks();
  const double value = read_loss(result);
  if (must_be_finite) check_finite(value, position, parts);
  loss.add(value, batch.rows);
  return value;
}

void Model::Training::check_finite(double value, const FitPosition& at,
                                   const Blocks& parts) const {
  if (std::isfinite(value)) return;
  const std::string place = place_of(Phase::train, at.epoch, at.step + 1);
  throw StateError("fit", "the loss stays finite",
                   str(value, place, culprits(layouts.mesh(), parts)),
                   "lower the learning rate, or look for bad values in the data");
}

double Model::Training::test(Model& model, Examples&& examples) {
  const Batch batch = prepare(model, std::move(examples));
  const double value = read_loss(model.test_step(batch));
  loss.add(value, batch.rows);
  return value;
}

std::vector<at::Tensor> Model::Training::predict(Model& model, Examples&& examples) {
  std::vector<at::Tensor> whole;
  for (const DTensor& output : model.predict_step(prepare(model, std::move(examples)))) {
    whole.push_back(output.full());
  }
  return whole;
}

Shapes batch_shapes(const DatasetHandle& data) {
  Shapes shapes = data.input_shapes();
  for (Shape& shape : shapes) shape.insert(shape.begin(), -1);
  return shapes;
}

double read_loss(const DTensor& loss) {
  const ProfileSpan span(SpanKind::metrics, "read loss");
  check_number(loss);
  return loss.full().item<double>();
}

}  // namespace tessera
