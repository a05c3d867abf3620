#include <tessera/optimizers/rmsprop.hpp>

#include <ATen/ATen.h>

#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {
namespace {

class RMSpropOptimizer : public Optimizer {
 public:
  RMSpropOptimizer(const LearningRate& learning_rate, const RMSpropOptions& options)
      : Optimizer("RMSprop", learning_rate, base_options(options)), options_(options) {
    check_fraction("RMSprop", "rho", options.rho);
    check_fraction("RMSprop", "momentum", options.momentum);
    check_not_negative("RMSprop", "epsilon", options.epsilon);
  }
  Json config() const override {
    Json config = Optimizer::config();
    config["rho"] = options_.rho;
    config["momentum"] = options_.momentum;
    config["epsilon"] = options_.epsilon;
    config["centered"] = options_.centered;
    return config;
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    std::vector<SlotSpec> specs = {{"velocity"}};
    if (options_.momentum > 0) specs.push_back({"momentum"});
    if (options_.centered) specs.push_back({"average_gradient"});
    return specs;
  }

  void update(const UpdateArgs& args) const override {
    at::Tensor weight = args.weight, velocity = args.slots[0];
    const at::Tensor& gradient = args.gradient;
    velocity.mul_(options_.rho).addcmul_(gradient, gradient, 1 - options_.rho);
    at::Tensor root = velocity + options_.epsilon;
    if (options_.centered) {
      at::Tensor average = args.slots.back();
      average.mul_(options_.rho).add_(gradient, 1 - options_.rho);
      root.addcmul_(average, average, -1);
    }
    root.sqrt_();
    if (options_.momentum == 0) {
      weight.addcdiv_(gradient, root, -args.learning_rate);
      return;
    }
    at::Tensor momentum = args.slots[1];
    momentum.mul_(options_.momentum).addcdiv_(gradient, root, args.learning_rate);
    weight.sub_(momentum);
  }

 private:
  RMSpropOptions options_;
};

}  // namespace

RMSprop::RMSprop(LearningRate learning_rate, RMSpropOptions options)
    : OptimizerHandle(std::make_shared<RMSpropOptimizer>(learning_rate, options)) {}

RMSprop RMSprop::from_config(JsonObject& config) {
  const LearningRate rate = take_learning_rate(config, 0.001);
  RMSpropOptions options;
  take(config, "rho", options.rho);
  take(config, "momentum", options.momentum);
  take(config, "epsilon", options.epsilon);
  take(config, "centered", options.centered);
  take_base_options(config, options);
  return RMSprop(rate, options);
}

}  // namespace tessera
