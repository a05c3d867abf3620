#include <tessera/optimizers/adafactor.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/optimizer/gradient_clipping.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/relayout.hpp>
#include <tessera/optimizers/internal/block_values.hpp>
#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {
namespace {

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
  Json config() const override {
    Json config = Optimizer::config();
    config["beta_2_decay"] = options_.beta_2_decay;
    config["epsilon_1"] = options_.epsilon_1;
    config["epsilon_2"] = options_.epsilon_2;
    config["clip_threshold"] = options_.clip_threshold;
    config["relative_step"] = options_.relative_step;
    return config;
  }

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

Adafactor Adafactor::from_config(JsonObject& config) {
  const LearningRate rate = take_learning_rate(config, 0.001);
  AdafactorOptions options;
  take(config, "beta_2_decay", options.beta_2_decay);
  take(config, "epsilon_1", options.epsilon_1);
  take(config, "epsilon_2", options.epsilon_2);
  take(config, "clip_threshold", options.clip_threshold);
  take(config, "relative_step", options.relative_step);
  take_base_options(config, options);
  return Adafactor(rate, options);
}

}  // namespace tessera
