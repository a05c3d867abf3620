#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/nn/losses/loss.hpp>
#include <tessera/framework/nn/metric.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// Throws StateError if the optimizer was built for weights that are not the model's: its step
/// count and slots belong to another model. Warns of exclusions from weight decay that match no
/// weight.
void check_optimizer(const Layer& model, Optimizer& optimizer);

/// Throws StateError if the step read trainable Variables that are not the model's weights: they
/// would be neither trained nor saved.
void check_variables(const Layer& model, const GradientTape& tape);

/// Warns of a step that trains nothing, since no weight of the model is trainable.
void warn_of_untrainable(const Layer& model);

/// Warns of metrics that take logits for probabilities: those of an output whose `loss` is from
/// logits. `of` names the output: " of output a", or empty.
void warn_of_metrics_of_logits(const Layer& model, const std::string& of, const Loss& loss,
                               const std::vector<std::shared_ptr<Metric>>& metrics);

/// Warns if a loss from logits gets probabilities.
void warn_of_probabilities(const Layer& model, const GradientTape& tape);

/// Warns of variables that the loss does not depend on.
void warn_of_missing_gradients(const Layer& model, const std::vector<Variable>& variables,
                               const std::vector<DTensor>& gradients);

}  // namespace tessera::detail
