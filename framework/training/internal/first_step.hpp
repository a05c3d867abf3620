#pragma once

#include <vector>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// Throws StateError if the optimizer was built for weights that are not the model's: its step
/// count and slots belong to another model.
void check_optimizer(const Layer& model, const Optimizer& optimizer);

/// Throws StateError if the step read trainable Variables that are not the model's weights: they
/// would be neither trained nor saved.
void check_variables(const Layer& model, const GradientTape& tape);

/// Warns if a loss from logits gets probabilities.
void warn_of_probabilities(const Layer& model, const GradientTape& tape);

/// Warns of variables that the loss does not depend on.
void warn_of_missing_gradients(const Layer& model, const std::vector<Variable>& variables,
                               const std::vector<DTensor>& gradients);

}  // namespace tessera::detail
