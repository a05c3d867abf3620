#include <tessera/optimizers/adafactor.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/optimizer/internal/block_sums.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/optimizers/internal/block_values.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AdafactorOptions& o, const Visit& visit) {
  visit("beta_2_decay", o.beta_2_decay);
  visit("epsilon_1", o.epsilon_1);
  visit("epsilon_2", o.epsilon_2);
  visit("clip_threshold", o.clip_threshold);
  visit("relative_step", o.relative_step);
}

namespace {

const Registered registered_adafactor(optimizer_factories(), {"Adafactor"},
                                      optimizer_of<Adafactor, AdafactorOptions>);

void move_mean(Variable mean, const DTensor& value, double share) {
  mean.assign(mean.value() * (1 - share) + value * share);
}

/// Divides a vector elementwise by host numbers, without an upload to the GPU.
at::Tensor divided(const at::Tensor& vector, const std::vector<double>& by) {
  if (vector.is_cpu()) return vector / at::tensor(by, at::kDouble);
  const std::vector<at::Scalar> numbers(by.begin(), by.end());
  return at::stack(at::_foreach_div(vector.unbind(), numbers));
}

class AdafactorOptimizer : public Optimizer {
 public:
  AdafactorOptimizer(const LearningRate& learning_rate, const AdafactorOptions& options)
      : Optimizer("Adafactor", learning_rate, base_options(options)), options_(options) {
    check_not_negative("Adafactor", "epsilon_1", options.epsilon_1);
    check_not_negative("Adafactor", "epsilon_2", options.epsilon_2);
    if (options.beta_2_decay > 0) {
      throw ConfigError("Adafactor", "beta_2_decay is at most 0", str(options.beta_2_decay),
                        "use -0.8");
    }
    if (!(options.clip_threshold > 0)) {
      throw ConfigError("Adafactor", "clip_threshold is positive", str(options.clip_threshold),
                        "use 1");
    }
  }
  Json config() const override { return optimizer_config(*this, options_); }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable& variable) const override {
    const auto rank = static_cast<int64_t>(variable.shape().size());
    if (rank < 2) return {{"velocity"}};
    return {{.name = "r", .without_axis = rank - 1},
            {.name = "c", .without_axis = rank - 2},
            {"velocity"}};
  }
  bool needs_full_variable() const override { return true; }

  void update_variables(const std::vector<VariableUpdate>& updates) const override {
    std::vector<DTensor> weights, gradients, means;
    for (const VariableUpdate& update : updates) {
      weights.push_back(update.weight);
      gradients.push_back(update.gradient);
      means.push_back(mean_of_squares(update));
    }
    const std::vector<DTensor> steps =
        computed(gradients, means,
                 [](const auto& gradient, const auto& mean) { return gradient / mean.sqrt(); });
    const double rate =
        std::min(updates[0].learning_rate, 1 / std::sqrt(static_cast<double>(updates[0].step)));
    subtract_scaled(weights, steps, [&](const StepNorms& of) {
      std::vector<double> elements;
      for (size_t v : of.members) {
        elements.push_back(static_cast<double>(std::max<int64_t>(1, weights[v].numel())));
      }
      const auto root_of_mean = [&](const at::Tensor& squares) {
        return divided(squares, elements).sqrt_();
      };
      const at::Tensor step = root_of_mean(of.steps) / options_.clip_threshold;
      const at::Tensor weight = root_of_mean(of.values).clamp_min_(options_.epsilon_2);
      return weight.mul_(rate).div_(step.clamp_min(1));
    });
  }

 private:
  /// Updates the running mean of squared gradients and returns it with the gradient's sharding.
  DTensor mean_of_squares(const VariableUpdate& update) const {
    const double share = std::pow(static_cast<double>(update.step), options_.beta_2_decay);
    const DTensor& gradient = update.gradient;
    const DTensor squares = ops::square(gradient) + options_.epsilon_1;
    Variable velocity = update.slots.back();
    if (gradient.rank() < 2) {
      move_mean(velocity, squares, share);
    } else {
      const Variable &r = update.slots[0], &c = update.slots[1];
      move_mean(r, ops::mean(squares, {-1}), share);
      move_mean(c, ops::mean(squares, {-2}), share);
      const DTensor rows = r.value() / ops::mean(r.value(), {-1}, /*keepdims=*/true);
      velocity.assign(ops::expand_dims(rows, -1) * ops::expand_dims(c.value(), -2));
    }
    return relayout_to(velocity.value(), gradient.sharding());
  }

  AdafactorOptions options_;
};

}  // namespace

Adafactor::Adafactor(LearningRate learning_rate, AdafactorOptions options)
    : OptimizerHandle(std::make_shared<AdafactorOptimizer>(learning_rate, options)) {}

}  // namespace tessera
