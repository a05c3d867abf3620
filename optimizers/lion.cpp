#include <tessera/optimizers/lion.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {
namespace {

class LionOptimizer : public Optimizer {
 public:
  LionOptimizer(const LearningRate& learning_rate, const LionOptions& options)
      : Optimizer("Lion", learning_rate, base_options(options)), options_(options) {
    check_fraction("Lion", "beta_1", options.beta_1);
    check_fraction("Lion", "beta_2", options.beta_2);
    if (options.beta_1 > 0) return;
    throw ConfigError("Lion", "beta_1 is positive", "0", "use 0.9");
  }
  Json config() const override {
    Json config = Optimizer::config();
    config["beta_1"] = options_.beta_1;
    config["beta_2"] = options_.beta_2;
    return config;
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override { return {{"momentum"}}; }

  void update(const UpdateArgs& args) const override {
    at::Tensor weight = args.weight, momentum = args.slots[0];
    const at::Tensor direction =
        (momentum * options_.beta_1).add_(args.gradient, 1 - options_.beta_1).sign_();
    weight.sub_(direction, args.learning_rate);
    momentum.mul_(options_.beta_2).add_(args.gradient, 1 - options_.beta_2);
  }

 private:
  LionOptions options_;
};

}  // namespace

Lion::Lion(LearningRate learning_rate, LionOptions options)
    : OptimizerHandle(std::make_shared<LionOptimizer>(learning_rate, options)) {}

Lion Lion::from_config(JsonObject& config) {
  const LearningRate rate = take_learning_rate(config, 0.001);
  LionOptions options;
  take(config, "beta_1", options.beta_1);
  take(config, "beta_2", options.beta_2);
  take_base_options(config, options);
  return Lion(rate, options);
}

}  // namespace tessera
