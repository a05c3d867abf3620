#include <tessera/optimizers/lion.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(LionOptions& o, const Visit& visit) {
  visit("beta_1", o.beta_1);
  visit("beta_2", o.beta_2);
}

namespace {

const Registered registered_lion(optimizer_factories(), {"Lion"}, optimizer_of<Lion, LionOptions>);

class LionOptimizer : public ListOptimizer<LionOptimizer> {
 public:
  LionOptimizer(const LearningRate& learning_rate, const LionOptions& options)
      : ListOptimizer("Lion", learning_rate, base_options(options)), options_(options) {
    check_fraction("Lion", "beta_1", options.beta_1);
    check_fraction("Lion", "beta_2", options.beta_2);
    if (options.beta_1 > 0) return;
    throw ConfigError("Lion", "beta_1 is positive", "0", "use 0.9");
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto& momentum = args.slots[0];
    const auto direction =
        (momentum * options_.beta_1).add_(args.gradient, 1 - options_.beta_1).sign_();
    args.weight.sub_(direction, args.learning_rate);
    momentum.mul_(options_.beta_2).add_(args.gradient, 1 - options_.beta_2);
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override { return {{"momentum"}}; }

 private:
  LionOptions options_;
};

}  // namespace

Lion::Lion(LearningRate learning_rate, LionOptions options)
    : OptimizerHandle(std::make_shared<LionOptimizer>(learning_rate, options)) {}

}  // namespace tessera
