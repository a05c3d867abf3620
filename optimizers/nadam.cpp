#include <tessera/optimizers/nadam.hpp>

#include <cmath>

#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/moment_options.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(NadamOptions& o, const Visit& visit) {
  moment_fields(o, visit);
}

namespace {

const Registered registered_nadam(optimizer_factories(), {"Nadam"},
                                  optimizer_of<Nadam, NadamOptions>);

class NadamOptimizer : public ListOptimizer<NadamOptimizer> {
 public:
  NadamOptimizer(const LearningRate& learning_rate, const NadamOptions& options)
      : ListOptimizer("Nadam", learning_rate, base_options(options)), options_(options) {
    check_moments("Nadam", options);
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto &gradient = args.gradient, &momentum = args.slots[0], &velocity = args.slots[1];
    const double step = static_cast<double>(args.step);
    momentum.lerp_(gradient, 1 - options_.beta_1);
    velocity.mul_(options_.beta_2).addcmul_(gradient, gradient, 1 - options_.beta_2);
    const double current_factor = factor(args.step), next_factor = factor(args.step + 1);
    const double product = product_of_factors(args.step);
    const auto change = momentum * (next_factor / (1 - product * next_factor));
    change.add_(gradient, (1 - current_factor) / (1 - product));
    const auto root = velocity / (1 - std::pow(options_.beta_2, step));
    args.weight.addcdiv_(change, root.sqrt_().add_(options_.epsilon), -args.learning_rate);
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"momentum"}, {"velocity"}};
  }

 private:
  double factor(int64_t step) const {
    return options_.beta_1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(step)));
  }

  double product_of_factors(int64_t last) const {
    double product = 1;
    // Below 1e-20, 1 - product is 1.
    for (int64_t t = 1; t <= last && product > 1e-20; ++t) product *= factor(t);
    return product;
  }

  NadamOptions options_;
};

}  // namespace

Nadam::Nadam(LearningRate learning_rate, NadamOptions options)
    : OptimizerHandle(std::make_shared<NadamOptimizer>(learning_rate, options)) {}

}  // namespace tessera
