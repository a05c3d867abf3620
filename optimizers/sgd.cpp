#include <tessera/optimizers/sgd.hpp>

#include <tessera/optimizers/internal/list_optimizer.hpp>
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

class SGDOptimizer : public ListOptimizer<SGDOptimizer> {
 public:
  SGDOptimizer(const LearningRate& learning_rate, const SGDOptions& options)
      : ListOptimizer("SGD", learning_rate, base_options(options)), options_(options) {
    check_fraction("SGD", "momentum", options.momentum);
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const double rate = args.learning_rate;
    if (options_.momentum == 0) {
      args.weight.sub_(args.gradient, rate);
      return;
    }
    const auto& momentum = args.slots[0];
    momentum.mul_(options_.momentum).sub_(args.gradient, rate);
    if (options_.nesterov) {
      args.weight.add_(momentum, options_.momentum).sub_(args.gradient, rate);
    } else {
      args.weight.add_(momentum);
    }
  }

 protected:
  bool rows_are_exact() const override { return options_.momentum == 0; }
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    if (options_.momentum == 0) return {};
    return {{"momentum"}};
  }

 private:
  SGDOptions options_;
};

}  // namespace

SGD::SGD(LearningRate learning_rate, SGDOptions options)
    : OptimizerHandle(std::make_shared<SGDOptimizer>(learning_rate, options)) {}

}  // namespace tessera
