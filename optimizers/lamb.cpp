#include <tessera/optimizers/lamb.hpp>

#include <cmath>

#include <tessera/framework/optimizer/internal/block_sums.hpp>
#include <tessera/optimizers/internal/block_values.hpp>
#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/moment_options.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(LambOptions& o, const Visit& visit) {
  moment_fields(o, visit);
}

namespace {

const Registered registered_lamb(optimizer_factories(), {"Lamb"}, optimizer_of<Lamb, LambOptions>);

class LambOptimizer : public ListOptimizer<LambOptimizer> {
 public:
  LambOptimizer(const LearningRate& learning_rate, const LambOptions& options)
      : ListOptimizer("Lamb", learning_rate, base_options(options)), options_(options) {
    check_moments("Lamb", options);
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto &momentum = args.slots[0], &velocity = args.slots[1];
    momentum.lerp_(args.gradient, 1 - options_.beta_1);
    velocity.mul_(options_.beta_2).addcmul_(args.gradient, args.gradient, 1 - options_.beta_2);
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"momentum"}, {"velocity"}};
  }
  bool needs_full_variable() const override { return true; }

  void update_variables(const std::vector<VariableUpdate>& updates) const override {
    Optimizer::update_variables(updates);
    std::vector<DTensor> weights, momenta, velocities;
    for (const VariableUpdate& update : updates) {
      weights.push_back(update.weight);
      momenta.push_back(update.slots[0].value());
      velocities.push_back(update.slots[1].value());
    }
    const auto t = static_cast<double>(updates[0].step);
    const double first = 1 - std::pow(options_.beta_1, t);
    const double second = 1 - std::pow(options_.beta_2, t);
    const std::vector<DTensor> steps =
        computed(momenta, velocities, [&](const auto& momentum, const auto& velocity) {
          const auto root = (velocity / second).sqrt_().add_(options_.epsilon);
          return (momentum / first).div_(root);
        });
    subtract_scaled(weights, steps, [&](const StepNorms& of) {
      const at::Tensor weight = of.values.sqrt(), step = of.steps.sqrt();
      const at::Tensor ratio = (weight / step).mul_(updates[0].learning_rate);
      return at::where(weight.mul(step).gt(0), ratio, updates[0].learning_rate);
    });
  }

 private:
  LambOptions options_;
};

}  // namespace

Lamb::Lamb(LearningRate learning_rate, LambOptions options)
    : OptimizerHandle(std::make_shared<LambOptimizer>(learning_rate, options)) {}

}  // namespace tessera
