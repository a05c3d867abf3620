#include <tessera/optimizers/sgd.hpp>

#include <ATen/ATen.h>

#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {
namespace {

class SGDOptimizer : public Optimizer {
 public:
  SGDOptimizer(const LearningRate& learning_rate, const SGDOptions& options)
      : Optimizer("SGD", learning_rate, base_options(options)), options_(options) {
    check_fraction("SGD", "momentum", options.momentum);
  }
  Json config() const override {
    Json config = Optimizer::config();
    config["momentum"] = options_.momentum;
    config["nesterov"] = options_.nesterov;
    return config;
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    if (options_.momentum == 0) return {};
    return {{"momentum"}};
  }

  void update(const UpdateArgs& args) const override {
    at::Tensor weight = args.weight;
    const double rate = args.learning_rate;
    if (options_.momentum == 0) {
      weight.sub_(args.gradient, rate);
      return;
    }
    at::Tensor momentum = args.slots[0];
    momentum.mul_(options_.momentum).sub_(args.gradient, rate);
    if (options_.nesterov) {
      weight.add_(momentum, options_.momentum).sub_(args.gradient, rate);
    } else {
      weight.add_(momentum);
    }
  }

 private:
  SGDOptions options_;
};

}  // namespace

SGD::SGD(LearningRate learning_rate, SGDOptions options)
    : OptimizerHandle(std::make_shared<SGDOptimizer>(learning_rate, options)) {}

SGD SGD::from_config(JsonObject& config) {
  const LearningRate rate = take_learning_rate(config, 0.01);
  SGDOptions options;
  take(config, "momentum", options.momentum);
  take(config, "nesterov", options.nesterov);
  take_base_options(config, options);
  return SGD(rate, options);
}

}  // namespace tessera
