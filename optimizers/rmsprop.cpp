#include <tessera/optimizers/rmsprop.hpp>

#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(RMSpropOptions& o, const Visit& visit) {
  visit("rho", o.rho);
  visit("momentum", o.momentum);
  visit("epsilon", o.epsilon);
  visit("centered", o.centered);
}

namespace {

const Registered registered_rmsprop(optimizer_factories(), {"RMSprop"},
                                    optimizer_of<RMSprop, RMSpropOptions>);

class RMSpropOptimizer : public ListOptimizer<RMSpropOptimizer> {
 public:
  RMSpropOptimizer(const LearningRate& learning_rate, const RMSpropOptions& options)
      : ListOptimizer("RMSprop", learning_rate, base_options(options)), options_(options) {
    check_fraction("RMSprop", "rho", options.rho);
    check_fraction("RMSprop", "momentum", options.momentum);
    check_not_negative("RMSprop", "epsilon", options.epsilon);
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto &weight = args.weight, &gradient = args.gradient, &velocity = args.slots[0];
    velocity.mul_(options_.rho).addcmul_(gradient, gradient, 1 - options_.rho);
    const auto root = velocity + options_.epsilon;
    if (options_.centered) {
      const auto& average = args.slots.back();
      average.mul_(options_.rho).add_(gradient, 1 - options_.rho);
      root.addcmul_(average, average, -1);
    }
    root.sqrt_();
    if (options_.momentum == 0) {
      weight.addcdiv_(gradient, root, -args.learning_rate);
      return;
    }
    const auto& momentum = args.slots[1];
    momentum.mul_(options_.momentum).addcdiv_(gradient, root, args.learning_rate);
    weight.sub_(momentum);
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    std::vector<SlotSpec> specs = {{"velocity"}};
    if (options_.momentum > 0) specs.push_back({"momentum"});
    if (options_.centered) specs.push_back({"average_gradient"});
    return specs;
  }

 private:
  RMSpropOptions options_;
};

}  // namespace

RMSprop::RMSprop(LearningRate learning_rate, RMSpropOptions options)
    : OptimizerHandle(std::make_shared<RMSpropOptimizer>(learning_rate, options)) {}

}  // namespace tessera
