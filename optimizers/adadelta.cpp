#include <tessera/optimizers/adadelta.hpp>

#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AdadeltaOptions& o, const Visit& visit) {
  visit("rho", o.rho);
  visit("epsilon", o.epsilon);
}

namespace {

const Registered registered_adadelta(optimizer_factories(), {"Adadelta"},
                                     optimizer_of<Adadelta, AdadeltaOptions>);

class AdadeltaOptimizer : public ListOptimizer<AdadeltaOptimizer> {
 public:
  AdadeltaOptimizer(const LearningRate& learning_rate, const AdadeltaOptions& options)
      : ListOptimizer("Adadelta", learning_rate, base_options(options)), options_(options) {
    check_fraction("Adadelta", "rho", options.rho);
    check_not_negative("Adadelta", "epsilon", options.epsilon);
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto &gradients = args.slots[0], &deltas = args.slots[1];
    gradients.mul_(options_.rho).addcmul_(args.gradient, args.gradient, 1 - options_.rho);
    const auto root = [&](const auto& mean) { return (mean + options_.epsilon).sqrt_(); };
    const auto delta = root(deltas).mul_(args.gradient).div_(root(gradients));
    deltas.mul_(options_.rho).addcmul_(delta, delta, 1 - options_.rho);
    args.weight.sub_(delta, args.learning_rate);
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"accumulated_grad"}, {"accumulated_delta_var"}};
  }

 private:
  AdadeltaOptions options_;
};

}  // namespace

Adadelta::Adadelta(LearningRate learning_rate, AdadeltaOptions options)
    : OptimizerHandle(std::make_shared<AdadeltaOptimizer>(learning_rate, options)) {}

}  // namespace tessera
