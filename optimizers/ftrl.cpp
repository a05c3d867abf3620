#include <tessera/optimizers/ftrl.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(FtrlOptions& o, const Visit& visit) {
  visit("learning_rate_power", o.learning_rate_power);
  visit("initial_accumulator_value", o.initial_accumulator_value);
  visit("l1_regularization_strength", o.l1_regularization_strength);
  visit("l2_regularization_strength", o.l2_regularization_strength);
  visit("l2_shrinkage_regularization_strength", o.l2_shrinkage_regularization_strength);
  visit("beta", o.beta);
}

namespace {

const Registered registered_ftrl(optimizer_factories(), {"Ftrl"}, optimizer_of<Ftrl, FtrlOptions>);

class FtrlOptimizer : public ListOptimizer<FtrlOptimizer> {
 public:
  FtrlOptimizer(const LearningRate& learning_rate, const FtrlOptions& options)
      : ListOptimizer("Ftrl", learning_rate, base_options(options)), options_(options) {
    check_not_negative("Ftrl", "initial_accumulator_value", options.initial_accumulator_value);
    check_not_negative("Ftrl", "l1_regularization_strength", options.l1_regularization_strength);
    check_not_negative("Ftrl", "l2_regularization_strength", options.l2_regularization_strength);
    check_not_negative("Ftrl", "l2_shrinkage_regularization_strength",
                       options.l2_shrinkage_regularization_strength);
    if (options.learning_rate_power <= 0) return;
    throw ConfigError("Ftrl", "learning_rate_power is at most 0", str(options.learning_rate_power),
                      "use -0.5, or 0 for a fixed rate");
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto &weight = args.weight, &accumulator = args.slots[0], &linear = args.slots[1];
    const double rate = args.learning_rate, power = -options_.learning_rate_power;
    const double l1 = options_.l1_regularization_strength;
    const double l2 = options_.l2_regularization_strength + options_.beta / (2 * rate);
    const auto old_power = accumulator.pow(power);
    accumulator.addcmul_(args.gradient, args.gradient);
    const auto new_power = accumulator.pow(power);
    // In this order, the large terms cancel first.
    const auto shrunk =
        args.gradient.add(weight, 2 * options_.l2_shrinkage_regularization_strength);
    linear.add_(shrunk.sub_((new_power - old_power).div_(rate).mul_(weight)));
    weight.copy_((linear.clamp(-l1, l1) - linear) / (new_power / rate + 2 * l2));
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{"accumulator", options_.initial_accumulator_value}, {"linear"}};
  }

 private:
  FtrlOptions options_;
};

}  // namespace

Ftrl::Ftrl(LearningRate learning_rate, FtrlOptions options)
    : OptimizerHandle(std::make_shared<FtrlOptimizer>(learning_rate, options)) {}

}  // namespace tessera
