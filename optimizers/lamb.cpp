#include <tessera/optimizers/lamb.hpp>

#include <cmath>

#include <ATen/ATen.h>

#include <tessera/framework/nn/optimizer/internal/gradient_clipping.hpp>
#include <tessera/optimizers/internal/block_values.hpp>
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

class LambOptimizer : public Optimizer {
 public:
  LambOptimizer(const LearningRate& learning_rate, const LambOptions& options)
      : Optimizer("Lamb", learning_rate, base_options(options)), options_(options) {
    check_moments("Lamb", options);
  }
  Json config() const override { return optimizer_config(*this, options_); }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"momentum"}, {"velocity"}};
  }
  bool updates_whole() const override { return true; }

  void update_variables(const std::vector<VariableUpdate>& updates) const override {
    Optimizer::update_variables(updates);
    std::vector<DTensor> values;
    for (const VariableUpdate& update : updates) values.push_back(update.weight);
    for (const VariableUpdate& update : updates) values.push_back(step_of(update));
    const std::vector<double> squares = squared_norms(values);
    const size_t count = updates.size();
    for (size_t i = 0; i < count; ++i) {
      const double weight = std::sqrt(squares[i]), step = std::sqrt(squares[count + i]);
      const double trust = weight > 0 && step > 0 ? weight / step : 1;
      subtract(updates[i].weight, values[count + i], trust * updates[i].learning_rate);
    }
  }

  void update(const UpdateArgs& args) const override {
    at::Tensor momentum = args.slots[0], velocity = args.slots[1];
    momentum.lerp_(args.gradient, 1 - options_.beta_1);
    velocity.mul_(options_.beta_2).addcmul_(args.gradient, args.gradient, 1 - options_.beta_2);
  }

 private:
  DTensor step_of(const VariableUpdate& update) const {
    const auto step = static_cast<double>(update.step);
    const double first = 1 - std::pow(options_.beta_1, step);
    const double second = 1 - std::pow(options_.beta_2, step);
    const Blocks& momenta = update.slots[0].value().blocks();
    const Blocks& velocities = update.slots[1].value().blocks();
    return made_blocks(update.weight, [&](size_t b) {
      const at::Tensor root = (velocities[b] / second).sqrt_().add_(options_.epsilon);
      return (momenta[b] / first).div_(root);
    });
  }

  LambOptions options_;
};

}  // namespace

Lamb::Lamb(LearningRate learning_rate, LambOptions options)
    : OptimizerHandle(std::make_shared<LambOptimizer>(learning_rate, options)) {}

}  // namespace tessera
