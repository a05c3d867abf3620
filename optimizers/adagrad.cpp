#include <tessera/optimizers/adagrad.hpp>

#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(AdagradOptions& o, const Visit& visit) {
  visit("initial_accumulator_value", o.initial_accumulator_value);
  visit("epsilon", o.epsilon);
}

namespace {

const Registered registered_adagrad(optimizer_factories(), {"Adagrad"},
                                    optimizer_of<Adagrad, AdagradOptions>);

class AdagradOptimizer : public ListOptimizer<AdagradOptimizer> {
 public:
  AdagradOptimizer(const LearningRate& learning_rate, const AdagradOptions& options)
      : ListOptimizer("Adagrad", learning_rate, base_options(options)), options_(options) {
    check_not_negative("Adagrad", "initial_accumulator_value", options.initial_accumulator_value);
    check_not_negative("Adagrad", "epsilon", options.epsilon);
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto& accumulator = args.slots[0];
    accumulator.addcmul_(args.gradient, args.gradient);
    args.weight.addcdiv_(args.gradient, (accumulator + options_.epsilon).sqrt_(),
                         -args.learning_rate);
  }

 protected:
  bool rows_are_exact() const override { return true; }
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"accumulator", options_.initial_accumulator_value}};
  }

 private:
  AdagradOptions options_;
};

}  // namespace

Adagrad::Adagrad(LearningRate learning_rate, AdagradOptions options)
    : OptimizerHandle(std::make_shared<AdagradOptimizer>(learning_rate, options)) {}

}  // namespace tessera
