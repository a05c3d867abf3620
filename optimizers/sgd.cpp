#include <tessera/optimizers/sgd.hpp>

#include <ATen/ATen.h>

#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(SGDOptions& o, const Visit& visit) {
  visit("momentum", o.momentum);
  visit("nesterov", o.nesterov);
}

namespace {

const Registered registered_sgd(optimizer_factories(), {"SGD"}, optimizer_of<SGD, SGDOptions>);

class SGDOptimizer : public Optimizer {
 public:
  SGDOptimizer(const LearningRate& learning_rate, const SGDOptions& options)
      : Optimizer("SGD", learning_rate, base_options(options)), options_(options) {
    check_fraction("SGD", "momentum", options.momentum);
  }
  Json config() const override { return optimizer_config(*this, options_); }

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

}  // namespace tessera
