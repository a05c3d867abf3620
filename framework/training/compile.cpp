#include <algorithm>
#include <chrono>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/registry.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

/// "accuracy" means the accuracy that fits the loss.
std::string metric_class(const std::string& text, const LossRef& loss) {
  if (text != "accuracy" && text != "acc") return text;
  const std::string of = loss ? loss->class_name() : "";
  if (of == "SparseCategoricalCrossentropy") return "SparseCategoricalAccuracy";
  if (of == "CategoricalCrossentropy") return "CategoricalAccuracy";
  if (of == "BinaryCrossentropy") return "BinaryAccuracy";
  return "Accuracy";
}

std::shared_ptr<Metric> resolved(const MetricRef& metric, const LossRef& loss) {
  if (metric.made()) return metric.made();
  const std::string name = metric.text() == "acc" ? "accuracy" : metric.text();
  return make_metric(metric_class(metric.text(), loss), name);
}

}  // namespace

void Model::compile(const CompileOptions& options) {
  auto made = std::make_shared<Training>();
  made->optimizer = options.optimizer;
  made->loss = options.loss;
  for (const MetricRef& metric : options.metrics) {
    made->metrics.push_back(resolved(metric, options.loss));
  }
  made->layouts = options.layouts;
  if (!made->layouts.defined()) {
    made->layouts = LayoutMap(options.mesh.defined() ? options.mesh : default_mesh());
  }
  training_ = made;
  if (built()) ensure_placed({});
}

Model::Training& Model::training(const std::string& caller) const {
  if (!training_) {
    throw StateError(caller, "the model is compiled", "a model without compile()",
                     "call compile() with an optimizer and a loss first");
  }
  return *training_;
}

/// Builds for these inputs if need be, then puts weights and slots where the layouts say.
void Model::ensure_placed(const Shapes& inputs) {
  Training& state = training("compile");
  if (state.placed) return;
  if (!built()) build(inputs);
  place_weights(state.layouts);
  std::vector<std::string> paths;
  for (const Variable& weight : weights()) paths.push_back(weight.path());
  state.layouts.check_all_used(paths);
  if (state.optimizer) state.optimizer->build(trainable_weights());
  state.placed = true;
}

void Model::Training::reset_metrics() const {
  for (const auto& metric : metrics) metric->reset();
}

Logs Model::Training::logs(double mean_loss) const {
  Logs list = {{"loss", mean_loss}};
  const std::vector<double> values = results(metrics);
  for (size_t i = 0; i < metrics.size(); ++i) list.emplace_back(metrics[i]->name(), values[i]);
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return list;
}

bool ReadingClock::due() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const double seconds = std::chrono::duration<double>(now).count();
  if (last_ >= 0 && seconds - last_ < 0.05) return false;
  last_ = seconds;
  return true;
}

double read_loss(const DTensor& loss) {
  if (loss.numel() != 1) {
    throw ShapeError("loss", "a step's loss is one number", to_string(loss.shape()),
                     "reduce it: sum_over_batch_size or sum");
  }
  return loss.full().item<double>();
}

void check_positive(const std::string& caller, const std::string& argument, int64_t value) {
  if (value >= 1) return;
  throw ConfigError(caller, argument + " is at least 1", str(value), "give a positive number");
}

}  // namespace tessera
