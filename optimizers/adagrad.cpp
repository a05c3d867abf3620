#include <tessera/optimizers/adagrad.hpp>

#include <ATen/ATen.h>

#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {
namespace {

class AdagradOptimizer : public Optimizer {
 public:
  AdagradOptimizer(const LearningRate& learning_rate, const AdagradOptions& options)
      : Optimizer("Adagrad", learning_rate, base_options(options)), options_(options) {
    check_not_negative("Adagrad", "initial_accumulator_value", options.initial_accumulator_value);
    check_not_negative("Adagrad", "epsilon", options.epsilon);
  }
  Json config() const override {
    Json config = Optimizer::config();
    config["initial_accumulator_value"] = options_.initial_accumulator_value;
    config["epsilon"] = options_.epsilon;
    return config;
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"accumulator", options_.initial_accumulator_value}};
  }

  void update(const UpdateArgs& args) const override {
    at::Tensor weight = args.weight, accumulator = args.slots[0];
    accumulator.addcmul_(args.gradient, args.gradient);
    weight.addcdiv_(args.gradient, (accumulator + options_.epsilon).sqrt_(), -args.learning_rate);
  }

 private:
  AdagradOptions options_;
};

}  // namespace

Adagrad::Adagrad(LearningRate learning_rate, AdagradOptions options)
    : OptimizerHandle(std::make_shared<AdagradOptimizer>(learning_rate, options)) {}

Adagrad Adagrad::from_config(JsonObject& config) {
  const LearningRate rate = take_learning_rate(config, 0.001);
  AdagradOptions options;
  take(config, "initial_accumulator_value", options.initial_accumulator_value);
  take(config, "epsilon", options.epsilon);
  take_base_options(config, options);
  return Adagrad(rate, options);
}

}  // namespace tessera
