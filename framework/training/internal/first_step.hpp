#pragma once

#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/autodiff/tape.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/layer.hpp>
#include <tessera/framework/nn/losses/loss.hpp>
#include <tessera/framework/nn/metric.hpp>
#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// Throws StateError if the optimizer was built for weights that are not the model's: its step
/// count and slots belong to another model. Warns of exclusions from weight decay that match no
/// weight.
void check_optimizer(const Layer& model, Optimizer& optimizer);

/// Checks of the first training step of a compiled model.
class FirstStep {
 public:
  /// Returns whether a step has weights to train. Warns of the first one without; throws StateError
  /// for a model without any weight.
  bool trains(const Layer& model, const std::vector<Variable>& trainable);
  /// Checks a step that `tape` has recorded, if it is the first, and returns whether it is: warns
  /// of a loss from logits that gets probabilities. Throws StateError if it read trainable
  /// Variables that are not the model's weights: they would be neither trained nor saved.
  bool check(const Layer& model, const GradientTape& tape);

 private:
  bool told_untrainable_ = false;  ///< whether the last step had no trainable weight
  bool checked_ = false;
};

/// Warns of weights of LayoutMapOptions::warn_of_replicated_bytes or more that every device keeps
/// in full, although the map has rules: probably none of them matches.
void warn_of_replicated_weights(const Layer& model, const LayoutMap& layouts);

/// Warns of variables that the loss does not depend on.
void warn_of_missing_gradients(const Layer& model, const std::vector<Variable>& variables,
                               const std::vector<DTensor>& gradients);

/// Warns of metrics that take logits for probabilities: those of an output whose `loss` is from
/// logits. `of` names the output: " of output a", or empty.
void warn_of_metrics_of_logits(const Layer& model, const std::string& of, const Loss& loss,
                               const std::vector<std::shared_ptr<Metric>>& metrics);

}  // namespace tessera::detail
