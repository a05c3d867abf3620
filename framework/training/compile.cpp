#include <algorithm>
#include <map>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/training/training_state.hpp>

namespace tessera {
namespace {

/// What compile() names for each output, before shapes are known.
struct Choices {
  Choices(const CompileOptions& options, const std::vector<std::string>& names)
      : losses(options.loss.values("loss", names, {})),
        weights(options.loss_weights.values("loss_weights", names, 1)),
        metrics(options.metrics.values("metrics", names)),
        weighted_metrics(options.weighted_metrics.values("weighted_metrics", names)) {}

  std::vector<LossChoice> losses;
  std::vector<double> weights;
  std::vector<std::vector<MetricHandle>> metrics;
  std::vector<std::vector<MetricHandle>> weighted_metrics;

  bool needs_labels() const {
    const auto any = [](const auto& lists) {
      return std::any_of(lists.begin(), lists.end(), [](const auto& l) { return !l.empty(); });
    };
    return losses_given() > 0 || any(metrics) || any(weighted_metrics);
  }
  int64_t losses_given() const {
    return std::count_if(losses.begin(), losses.end(),
                         [](const LossChoice& loss) { return static_cast<bool>(loss); });
  }
};

std::vector<std::shared_ptr<Metric>> made(const std::vector<MetricHandle>& metrics,
                                          const Shape& y_true, const Shape& y_pred) {
  std::vector<std::shared_ptr<Metric>> list;
  for (const MetricHandle& metric : metrics) list.push_back(metric_for(metric, y_true, y_pred));
  return list;
}

}  // namespace

void Model::compile(const CompileOptions& options) {
  auto made = std::make_shared<Training>();
  made->options = options;
  made->optimizer = options.optimizer;
  made->layouts = options.layouts;
  if (!made->layouts.defined()) {
    made->layouts = LayoutMap(options.mesh.defined() ? options.mesh : default_mesh());
    if (!options.mesh.defined()) made->layouts.set_storage(default_storage());
  }
  made->remote = current_remote_steps();
  // A subclass tells how many outputs it has only when it is called.
  if (output_names().size() > 1) Choices(options, output_names());
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

void Model::Training::choose(std::vector<std::string> names, const Batch& batch,
                             const std::vector<DTensor>& y_pred) {
  if (outputs.empty()) {
    if (names.size() != y_pred.size()) {
      names.clear();
      for (size_t i = 0; i < y_pred.size(); ++i) names.push_back(str("output_", i + 1));
    }
    const Choices chosen(options, names);
    if (!chosen.needs_labels()) return;
    if (batch.y.empty()) {
      throw ConfigError("fit", "the dataset has labels", "inputs only", "give it y");
    }
    // Taken over when all are made, so that an error leaves none behind.
    std::vector<CompiledOutput> all(batch.y.size() == names.size() ? names.size() : 0);
    for (size_t i = 0; i < all.size(); ++i) {
      const Shape& labels = batch.y[i].shape();
      const Shape& shape = y_pred[i].shape();
      CompiledOutput& output = all[i];
      output.loss = chosen.losses[i].loss(labels, shape);
      output.weight = chosen.weights[i];
      if (chosen.losses_given() > 1 && output.loss) {
        output.mean = std::make_shared<LossMean>(names[i] + "_loss");
      }
      output.metrics = made(chosen.metrics[i], labels, shape);
      output.weighted_metrics = made(chosen.weighted_metrics[i], labels, shape);
    }
    outputs = std::move(all);
    name_metrics(names);
    restore_metrics();
  }
  if (batch.y.size() == y_pred.size()) return;
  throw ConfigError("fit", str("there are labels for each of the ", y_pred.size(), " outputs"),
                    str(batch.y.size(), " labels"), "give one y for each output");
}

/// Names as Keras gives them: after the output where there are several, and numbered if taken.
void Model::Training::name_metrics(const std::vector<std::string>& names) {
  metrics.clear();
  std::map<std::string, int64_t> uses;
  const auto add = [&](const std::string& name, const std::string& other,
                       const std::shared_ptr<Metric>& metric) {
    std::string chosen = uses.count(name) ? other : name;
    const int64_t number = uses[chosen]++;
    if (number > 0) chosen += str("_", number);
    metrics.emplace_back(chosen, metric);
  };
  const auto prefix = [&](size_t i) { return outputs.size() > 1 ? names[i] + "_" : ""; };
  for (const CompiledOutput& output : outputs) {
    if (output.mean) metrics.emplace_back(output.mean->name(), output.mean);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const auto& m : outputs[i].metrics) add(prefix(i) + m->name(), prefix(i) + m->name(), m);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const auto& m : outputs[i].weighted_metrics) {
      add(prefix(i) + m->name(), prefix(i) + "weighted_" + m->name(), m);
    }
  }
}

void Model::Training::reset_metrics() {
  loss = RowMean();
  restored = nullptr;
  for (const auto& [name, metric] : metrics) metric->reset();
  if (remote_sums) remote_sums->clear();
}

const OptimizerHandle& Model::optimizer() const { return training("optimizer").optimizer; }

std::vector<std::pair<std::string, std::shared_ptr<Metric>>> Model::metrics() const {
  return training("metrics").metrics;
}

std::vector<std::string> Model::metrics_names() const {
  std::vector<std::string> names = {"loss"};
  for (const auto& [name, metric] : training("metrics_names").metrics) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tessera
