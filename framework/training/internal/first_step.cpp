#include <tessera/framework/training/internal/first_step.hpp>

#include <iostream>
#include <set>
#include <string>

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

}  // namespace

void check_optimizer(const Layer& model, const Optimizer& optimizer) {
  const std::set<uint64_t> own = ids_of(model);
  for (const Variable& variable : optimizer.built_for()) {
    if (own.count(variable.id())) continue;
    throw StateError(
        str("model ", model.path()), "an optimizer belongs to one model",
        str(optimizer.name(), ", which has slots of another model's ", variable.path()),
        "compile each model with an optimizer of its own");
  }
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
