#include <tessera/framework/training/internal/first_step.hpp>

#include <algorithm>
#include <iostream>
#include <set>
#include <string>
#include <utility>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>

namespace tessera::detail {
namespace {

constexpr size_t max_names = 8;

std::set<uint64_t> ids_of(const Layer& model) {
  std::set<uint64_t> ids;
  for (const Variable& weight : model.weights()) ids.insert(weight.id());
  return ids;
}

std::string listed(std::vector<std::string> names) {
  const size_t more = names.size() > max_names ? names.size() - max_names : 0;
  names.resize(names.size() - more);
  return more > 0 ? str(join(names, ", "), " and ", more, " more") : join(names, ", ");
}

void warn(const Layer& model, const std::string& line) {
  const std::vector<Variable> weights = model.weights();
  if (!weights.empty() && !is_first_rank(weights[0].layout().mesh())) return;
  std::cerr << "Warning: " << line << '\n';
}

bool is_from_logits(const Json& config) {
  const auto found = config.find("from_logits");
  return found != config.end() && found->is_boolean() && found->get<bool>();
}

/// Whether a metric compares predictions with thresholds of probabilities, or takes their
/// logarithms, by its configuration.
bool takes_probabilities(const Json& config) {
  if (config.contains("from_logits")) return !is_from_logits(config);
  if (config.contains("num_thresholds")) return true;
  const auto one = config.find("threshold");
  if (one != config.end()) return one->is_number() && one->get<double>() > 0;
  const auto several = config.find("thresholds");
  if (several == config.end()) return false;
  // Without thresholds it is 0.5, or none for the largest top_k.
  if (several->empty()) return !config.contains("top_k") || config["top_k"].is_null();
  const Json list = several->is_array() ? *several : Json::array({*several});
  return std::any_of(list.begin(), list.end(), [](const Json& threshold) {
    return threshold.is_number() && threshold.get<double>() > 0;
  });
}

void check_variables(const Layer& model, const GradientTape& tape) {
  const std::set<uint64_t> own = ids_of(model);
  std::set<uint64_t> seen;
  std::vector<std::string> others;
  for (const auto& tag : tape.variables()) {
    if (!own.count(tag->id) && seen.insert(tag->id).second) others.push_back(tag->path);
  }
  if (others.empty()) return;
  throw StateError(str("model ", model.path()), "the weights that a step reads are the model's",
                   str(listed(others), " of a layer that the model does not track"),
                   "pass the layer to track() of the model or layer that calls it, or "
                   "set_trainable(false) if it is not to be trained");
}

void warn_of_probabilities(const Layer& model, const GradientTape& tape) {
  const auto warn_of = [&](const char* loss, const char* made) {
    if (!tape.took_result(loss, made)) return;
    warn(model, str("the loss is from logits, but the outputs come from ", made,
                    ": leave out that activation, or from_logits"));
  };
  warn_of("sparse_softmax_cross_entropy", "softmax");
  warn_of("log_softmax", "softmax");
  warn_of("sigmoid_cross_entropy", "sigmoid");
}

}  // namespace

bool FirstStep::trains(const Layer& model, const std::vector<Variable>& trainable) {
  const bool told = std::exchange(told_untrainable_, trainable.empty());
  if (!trainable.empty()) return true;
  if (model.weights().empty()) {
    throw StateError("model " + model.path(), "a model has weights to train", "none",
                     "pass every layer that its call() uses to track()");
  }
  if (!told) {
    warn(model,
         "the model does not have any trainable weights: training changes none of them. Call "
         "set_trainable(true) for the layers to be trained");
  }
  return false;
}

bool FirstStep::check(const Layer& model, const GradientTape& tape) {
  if (std::exchange(checked_, true)) return false;
  check_variables(model, tape);
  warn_of_probabilities(model, tape);
  return true;
}

void warn_of_metrics_of_logits(const Layer& model, const std::string& of, const Loss& loss,
                               const std::vector<std::shared_ptr<Metric>>& metrics) {
  if (!is_from_logits(loss.config())) return;
  std::vector<std::string> names;
  for (const auto& metric : metrics) {
    if (takes_probabilities(metric->config())) names.push_back(metric->name());
  }
  if (names.empty()) return;
  warn(model, str("the loss", of, " is from logits, but ", listed(names),
                  names.size() == 1 ? " takes" : " take",
                  " its outputs as probabilities: end the model with the activation and leave out "
                  "from_logits, or give from_logits to the metrics that have it"));
}

void check_optimizer(const Layer& model, Optimizer& optimizer) {
  optimizer.warn_of_unused_exclusions(model.weights());
  const std::set<uint64_t> own = ids_of(model);
  for (const Variable& variable : optimizer.built_for()) {
    if (own.count(variable.id())) continue;
    throw StateError(
        str("model ", model.path()), "an optimizer belongs to one model",
        str(optimizer.name(), ", which has slots of another model's ", variable.path()),
        "compile each model with an optimizer of its own");
  }
}

void warn_of_replicated_weights(const Layer& model, const LayoutMap& layouts) {
  const int64_t bound = layouts.options().warn_of_replicated_bytes;
  if (bound <= 0 || layouts.rules().empty() || layouts.mesh().size() == 1) return;
  std::vector<std::string> names;
  for (const Variable& weight : model.weights()) {
    const int64_t bytes =
        numel(weight.shape()) * static_cast<int64_t>(c10::elementSize(weight.dtype()));
    if (bytes < bound || !weight.layout().is_fully_replicated()) continue;
    if (layouts.find(weight.path(), weight.shape()).rule >= 0) continue;
    const bool small = bytes < int64_t{1} << 20;
    names.push_back(str(weight.path(), " (", small ? bytes : bytes >> 20, small ? " B)" : " MiB)"));
  }
  if (names.empty()) return;
  warn(model, str("each device keeps a full copy of ", listed(names),
                  ": add a rule to the layout map, or set its option warn_of_replicated_bytes"));
}

void warn_of_missing_gradients(const Layer& model, const std::vector<Variable>& variables,
                               const std::vector<DTensor>& gradients) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!gradients[i].defined()) missing.push_back(variables[i].path());
  }
  // Without any gradient the optimizer throws.
  if (missing.empty() || missing.size() == variables.size()) return;
  warn(model, str("gradients do not exist for ", listed(missing), ": the loss does not depend on ",
                  missing.size() == 1 ? "it" : "them",
                  ", or only through functions without gradients, such as ATen functions on "
                  "shards"));
}

}  // namespace tessera::detail
