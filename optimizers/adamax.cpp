#include <tessera/optimizers/adamax.hpp>

#include <cmath>

#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/moment_options.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AdamaxOptions& o, const Visit& visit) {
  moment_fields(o, visit);
}

namespace {

const Registered registered_adamax(optimizer_factories(), {"Adamax"},
                                   optimizer_of<Adamax, AdamaxOptions>);

class AdamaxOptimizer : public ListOptimizer<AdamaxOptimizer> {
 public:
  AdamaxOptimizer(const LearningRate& learning_rate, const AdamaxOptions& options)
      : ListOptimizer("Adamax", learning_rate, base_options(options)), options_(options) {
    check_moments("Adamax", options);
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto &momentum = args.slots[0], &norm = args.slots[1];
    const double step = static_cast<double>(args.step);
    momentum.lerp_(args.gradient, 1 - options_.beta_1);
    norm.mul_(options_.beta_2).clamp_min_(args.gradient.abs());
    const double rate = args.learning_rate / (1 - std::pow(options_.beta_1, step));
    args.weight.addcdiv_(momentum, norm + options_.epsilon, -rate);
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"momentum"}, {"norm"}};
  }

 private:
  AdamaxOptions options_;
};

}  // namespace

Adamax::Adamax(LearningRate learning_rate, AdamaxOptions options)
    : OptimizerHandle(std::make_shared<AdamaxOptimizer>(learning_rate, options)) {}

}  // namespace tessera
