#include <tessera/optimizers/adafactor.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/optimizer/internal/gradient_clipping.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
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
  bool updates_whole() const override { return true; }

  void update_variables(const std::vector<VariableUpdate>& updates) const override {
    std::vector<DTensor> values;
    for (const VariableUpdate& update : updates) values.push_back(update.weight);
    for (const VariableUpdate& update : updates) values.push_back(step_of(update));
    const std::vector<double> squares = squared_norms(values);
    const size_t count = updates.size();
    for (size_t i = 0; i < count; ++i) {
      const auto elements = static_cast<double>(std::max<int64_t>(1, updates[i].weight.numel()));
      const double weight = std::sqrt(squares[i] / elements);
      const double step = std::sqrt(squares[count + i] / elements);
      const double rate = std::min(updates[i].learning_rate,
                                   1 / std::sqrt(static_cast<double>(updates[i].step)));
      subtract(updates[i].weight, values[count + i],
               std::max(options_.epsilon_2, weight) * rate /
                   std::max(1.0, step / options_.clip_threshold));
    }
  }

 private:
  DTensor step_of(const VariableUpdate& update) const {
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
    const DTensor means = relayout_to(velocity.value(), gradient.sharding());
    return made_blocks(
        gradient, [&](size_t b) { return gradient.blocks()[b] / means.blocks()[b].sqrt(); });
  }

  AdafactorOptions options_;
};

}  // namespace

Adafactor::Adafactor(LearningRate learning_rate, AdafactorOptions options)
    : OptimizerHandle(std::make_shared<AdafactorOptimizer>(learning_rate, options)) {}

}  // namespace tessera
