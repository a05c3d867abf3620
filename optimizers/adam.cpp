#include <tessera/optimizers/adam.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>

namespace tessera {
namespace {

void check_options(const std::string& name, const AdamOptions& options) {
  const auto check_beta = [&](const char* what, double beta) {
    if (beta >= 0 && beta < 1) return;
    throw ConfigError(name, str(what, " lies in [0, 1)"), str(beta), "use Keras' default");
  };
  check_beta("beta_1", options.beta_1);
  check_beta("beta_2", options.beta_2);
  if (options.epsilon >= 0) return;
  throw ConfigError(name, "epsilon is not negative", str(options.epsilon), "use 1e-7");
}

class AdamOptimizer : public Optimizer {
 public:
  AdamOptimizer(std::string class_name, double learning_rate, const AdamOptions& options)
      : Optimizer(learning_rate, options.weight_decay),
        class_name_(std::move(class_name)),
        options_(options) {
    check_options(class_name_, options);
  }
  std::string class_name() const override { return class_name_; }
  Json config() const override {
    return {{"learning_rate", learning_rate()},
            {"beta_1", options_.beta_1},
            {"beta_2", options_.beta_2},
            {"epsilon", options_.epsilon},
            {"amsgrad", options_.amsgrad},
            {"weight_decay", weight_decay()},
            {"epsilon_on_corrected_root", options_.epsilon_on_corrected_root}};
  }

 protected:
  std::vector<std::string> slot_names() const override {
    if (options_.amsgrad) return {"momentum", "velocity", "velocity_hat"};
    return {"momentum", "velocity"};
  }

  void update(const UpdateArgs& args) const override { update_all({args}); }

  /// One call of ATen's fused kernel, which adds its epsilon to the corrected root.
  void update_all(const std::vector<UpdateArgs>& blocks) const override {
    if (blocks.empty()) return;
    std::vector<at::Tensor> weights, gradients, momenta, velocities, largest, steps;
    const int64_t step = blocks[0].step;
    const at::Tensor count = at::full({}, static_cast<double>(step), at::kFloat);
    for (const UpdateArgs& args : blocks) {
      weights.push_back(args.weight);
      gradients.push_back(args.gradient);
      momenta.push_back(args.slots[0]);
      velocities.push_back(args.slots[1]);
      if (options_.amsgrad) largest.push_back(args.slots[2]);
      steps.push_back(count);
    }
    const double correction = std::sqrt(1 - std::pow(options_.beta_2, step));
    const double epsilon =
        options_.epsilon_on_corrected_root ? options_.epsilon : options_.epsilon / correction;
    at::_fused_adam_(weights, gradients, momenta, velocities, largest, steps,
                     blocks[0].learning_rate, options_.beta_1, options_.beta_2, 0, epsilon,
                     options_.amsgrad, false);
  }

 private:
  std::string class_name_;
  AdamOptions options_;
};

}  // namespace

OptimizerRef make_adam(const std::string& class_name, double learning_rate,
                       const AdamOptions& options) {
  return OptimizerRef(std::make_shared<AdamOptimizer>(class_name, learning_rate, options));
}

Adam::Adam(double learning_rate, AdamOptions options)
    : OptimizerRef(make_adam("Adam", learning_rate, options)) {}

}  // namespace tessera
