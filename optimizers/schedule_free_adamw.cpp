#include <tessera/optimizers/schedule_free_adamw.hpp>

#include <algorithm>
#include <cmath>

#include <tessera/framework/base/error.hpp>
#include <tessera/optimizers/internal/list_optimizer.hpp>
#include <tessera/optimizers/internal/moment_options.hpp>
#include <tessera/optimizers/internal/optimizer_config.hpp>
#include <tessera/optimizers/internal/option_checks.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ScheduleFreeAdamWOptions& o, const Visit& visit) {
  moment_fields(o, visit);
  visit("warmup_steps", o.warmup_steps);
}

namespace {

const Registered registered_schedule_free_adamw(
    optimizer_factories(), {"ScheduleFreeAdamW"},
    optimizer_of<ScheduleFreeAdamW, ScheduleFreeAdamWOptions>);

const char* const schedule_free_name = "ScheduleFreeAdamW";

class ScheduleFreeAdamWOptimizer : public ListOptimizer<ScheduleFreeAdamWOptimizer> {
 public:
  ScheduleFreeAdamWOptimizer(const LearningRate& learning_rate,
                             const ScheduleFreeAdamWOptions& options)
      : ListOptimizer(schedule_free_name, learning_rate, base_options(options)), options_(options) {
    check_moments(schedule_free_name, options);
    check_not_negative(schedule_free_name, "warmup_steps",
                       static_cast<double>(options.warmup_steps));
    if (options.beta_1 > 0) return;
    throw ConfigError(schedule_free_name, "beta_1 is positive", "0", "use 0.9");
  }
  Json config() const override { return optimizer_config(*this, options_); }

  template <class Args>
  void rule(const Args& args) const {
    const auto &weight = args.weight, &iterate = args.slots[0], &velocity = args.slots[1];
    const auto step = static_cast<double>(args.step);
    double rate = args.learning_rate;
    if (options_.warmup_steps > 0) {
      rate *= std::min(step / static_cast<double>(options_.warmup_steps), 1.0);
    }
    velocity.mul_(options_.beta_2).addcmul_(args.gradient, args.gradient, 1 - options_.beta_2);
    const double correction = 1 - std::pow(options_.beta_2, step);
    const auto root = (velocity / correction).sqrt_().add_(options_.epsilon);
    // The rest of the weight is beta_1 times the mean of the iterates so far.
    weight.sub_(iterate, 1 - options_.beta_1);
    iterate.addcdiv_(args.gradient, root, -rate);
    weight.mul_(1 - 1 / step).add_(iterate, options_.beta_1 / step + 1 - options_.beta_1);
  }

 protected:
  std::vector<SlotSpec> slot_specs(const Variable&) const override {
    return {{.name = "momentum", .starts_as_variable = true}, {"velocity"}};
  }

 private:
  ScheduleFreeAdamWOptions options_;
};

}  // namespace

ScheduleFreeAdamW::ScheduleFreeAdamW(LearningRate learning_rate, ScheduleFreeAdamWOptions options)
    : OptimizerHandle(std::make_shared<ScheduleFreeAdamWOptimizer>(learning_rate, options)) {}

}  // namespace tessera
