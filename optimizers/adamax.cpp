#include <tessera/optimizers/adamax.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/internal/moment_options.hpp>

namespace tessera {
namespace {

class AdamaxOptimizer : public Optimizer {
 public:
  AdamaxOptimizer(const LearningRate& learning_rate, const AdamaxOptions& options)
      : Optimizer("Adamax", learning_rate, base_options(options)), options_(options) {
    check_moments("Adamax", options);
  }
  Json config() const override {
    Json config = Optimizer::config();
    put_moments(config, options_);
    return config;
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"momentum"}, {"norm"}};
  }

  void update(const UpdateArgs& args) const override {
    at::Tensor weight = args.weight, momentum = args.slots[0], norm = args.slots[1];
    const double step = static_cast<double>(args.step);
    momentum.lerp_(args.gradient, 1 - options_.beta_1);
    at::maximum_out(norm, norm.mul_(options_.beta_2), args.gradient.abs());
    const double rate = args.learning_rate / (1 - std::pow(options_.beta_1, step));
    weight.addcdiv_(momentum, norm + options_.epsilon, -rate);
  }

 private:
  AdamaxOptions options_;
};

}  // namespace

Adamax::Adamax(LearningRate learning_rate, AdamaxOptions options)
    : OptimizerHandle(std::make_shared<AdamaxOptimizer>(learning_rate, options)) {}

Adamax Adamax::from_config(JsonObject& config) {
  const LearningRate rate = take_learning_rate(config, 0.001);
  AdamaxOptions options;
  take_moments(config, options);
  take_base_options(config, options);
  return Adamax(rate, options);
}

}  // namespace tessera
