#include <tessera/optimizers/schedules/schedules.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/config/option_fields.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(ExponentialDecayOptions& o, const Visit& visit) {
  visit("staircase", o.staircase);
  visit("name", o.name);
}

template <class Visit>
void fields(PiecewiseConstantDecayOptions& o, const Visit& visit) {
  visit("name", o.name);
}

template <class Visit>
void fields(PolynomialDecayOptions& o, const Visit& visit) {
  visit("end_learning_rate", o.end_learning_rate);
  visit("power", o.power);
  visit("cycle", o.cycle);
  visit("name", o.name);
}

template <class Visit>
void fields(InverseTimeDecayOptions& o, const Visit& visit) {
  visit("staircase", o.staircase);
  visit("name", o.name);
}

template <class Visit>
void fields(CosineDecayOptions& o, const Visit& visit) {
  visit("alpha", o.alpha);
  visit("name", o.name);
  visit("warmup_target", o.warmup_target);
  visit("warmup_steps", o.warmup_steps);
}

template <class Visit>
void fields(CosineDecayRestartsOptions& o, const Visit& visit) {
  visit("t_mul", o.t_mul);
  visit("m_mul", o.m_mul);
  visit("alpha", o.alpha);
  visit("name", o.name);
}

namespace {

/// Creates a schedule from its initial rate, decay length and options.
template <class ScheduleClass, class Options>
LearningRateScheduleHandle decay_of(JsonObject& config, const char* steps) {
  const auto options = options_from<Options>(config);
  const auto initial = config.take<double>("initial_learning_rate");
  return ScheduleClass(initial, config.take<double>(steps), options);
}

/// Creates a schedule from its initial rate, decay length, decay rate and options.
template <class ScheduleClass, class Options>
LearningRateScheduleHandle rated_decay(JsonObject& config) {
  const auto options = options_from<Options>(config);
  const auto initial = config.take<double>("initial_learning_rate");
  const auto steps = config.take<double>("decay_steps");
  return ScheduleClass(initial, steps, config.take<double>("decay_rate"), options);
}

const Registered registered_exponential(schedule_factories(), {"ExponentialDecay"},
                                        rated_decay<ExponentialDecay, ExponentialDecayOptions>);
const Registered registered_inverse_time(schedule_factories(), {"InverseTimeDecay"},
                                         rated_decay<InverseTimeDecay, InverseTimeDecayOptions>);
const Registered registered_piecewise(
    schedule_factories(), {"PiecewiseConstantDecay"}, [](JsonObject& config) {
      const auto options = options_from<PiecewiseConstantDecayOptions>(config);
      const auto boundaries = config.take<std::vector<int64_t>>("boundaries");
      const auto values = config.take<std::vector<double>>("values");
      return PiecewiseConstantDecay(boundaries, values, options);
    });
const Registered registered_polynomial(schedule_factories(), {"PolynomialDecay"},
                                       [](JsonObject& config) {
                                         return decay_of<PolynomialDecay, PolynomialDecayOptions>(
                                             config, "decay_steps");
                                       });
const Registered registered_cosine(schedule_factories(), {"CosineDecay"}, [](JsonObject& config) {
  return decay_of<CosineDecay, CosineDecayOptions>(config, "decay_steps");
});
const Registered registered_restarts(
    schedule_factories(), {"CosineDecayRestarts"}, [](JsonObject& config) {
      return decay_of<CosineDecayRestarts, CosineDecayRestartsOptions>(config, "first_decay_steps");
    });

/// Returns a schedule's config(): its arguments, then its options.
template <class Options>
Json schedule_config(Json arguments, const Options& options) {
  arguments.update(config_of(options));
  return arguments;
}

// float32, as in Keras, since rounding decides in which step a staircase or a period ends.
constexpr float pi = std::numbers::pi_v<float>;

void check_steps(const std::string& class_name, const char* what, double steps) {
  if (steps > 0) return;
  throw ConfigError(class_name, str(what, " is positive"), str(steps),
                    "count the steps of the decay");
}

/// A rate as a function of p = step / decay_steps, rounded down if `staircase`.
template <class Options>
struct DecaySchedule : LearningRateSchedule {
  double initial, decay_steps, decay_rate;
  Options options;

  DecaySchedule(const std::string& class_name, double initial_, double steps, double rate,
                Options options_)
      : initial(initial_), decay_steps(steps), decay_rate(rate), options(std::move(options_)) {
    check_steps(class_name, "decay_steps", steps);
  }
  virtual float at(float p) const = 0;
  double operator()(int64_t step) const override {
    const float p = float(step) / float(decay_steps);
    return at(options.staircase ? std::floor(p) : p);
  }
  Json config() const override {
    return schedule_config({{"initial_learning_rate", initial},
                            {"decay_steps", decay_steps},
                            {"decay_rate", decay_rate}},
                           options);
  }
};

struct ExponentialSchedule : DecaySchedule<ExponentialDecayOptions> {
  ExponentialSchedule(double first, double steps, double rate, ExponentialDecayOptions select)
      : DecaySchedule("ExponentialDecay", first, steps, rate, std::move(select)) {}
  std::string class_name() const override { return "ExponentialDecay"; }
  float at(float p) const override { return float(initial) * std::pow(float(decay_rate), p); }
};

struct InverseTimeSchedule : DecaySchedule<InverseTimeDecayOptions> {
  InverseTimeSchedule(double first, double steps, double rate, InverseTimeDecayOptions select)
      : DecaySchedule("InverseTimeDecay", first, steps, rate, std::move(select)) {}
  std::string class_name() const override { return "InverseTimeDecay"; }
  float at(float p) const override { return float(initial) / (1 + float(decay_rate) * p); }
};

struct PiecewiseSchedule : LearningRateSchedule {
  std::vector<int64_t> boundaries;
  std::vector<double> values;
  PiecewiseConstantDecayOptions options;

  PiecewiseSchedule(std::vector<int64_t> boundaries_, std::vector<double> values_,
                    PiecewiseConstantDecayOptions options_)
      : boundaries(std::move(boundaries_)),
        values(std::move(values_)),
        options(std::move(options_)) {
    if (boundaries.size() + 1 != values.size()) {
      throw ConfigError(class_name(), "there must be one more value than boundaries",
                        str(boundaries.size(), " boundaries, ", values.size(), " values"),
                        "give a value before the first boundary and one after each");
    }
    const auto falls = std::adjacent_find(boundaries.begin(), boundaries.end(),
                                          [](int64_t a, int64_t b) { return a >= b; });
    if (falls == boundaries.end()) return;
    throw ConfigError(class_name(), "boundaries must increase", str(falls[1], " after ", falls[0]),
                      "sort them");
  }
  std::string class_name() const override { return "PiecewiseConstantDecay"; }
  double operator()(int64_t step) const override {
    const auto reached = std::lower_bound(boundaries.begin(), boundaries.end(), step);
    return float(values[static_cast<size_t>(reached - boundaries.begin())]);
  }
  Json config() const override {
    return schedule_config({{"boundaries", boundaries}, {"values", values}}, options);
  }
};

struct PolynomialSchedule : LearningRateSchedule {
  double initial, decay_steps;
  PolynomialDecayOptions options;

  PolynomialSchedule(double initial_, double steps, PolynomialDecayOptions options_)
      : initial(initial_), decay_steps(steps), options(std::move(options_)) {
    check_steps(class_name(), "decay_steps", steps);
  }
  std::string class_name() const override { return "PolynomialDecay"; }
  double operator()(int64_t step) const override {
    const auto first = float(initial), end = float(options.end_learning_rate);
    auto at = float(step), steps = float(decay_steps);
    if (options.cycle) {
      steps *= step == 0 ? 1 : std::ceil(at / steps);
    } else {
      at = std::min(at, steps);
    }
    return (first - end) * std::pow(1 - at / steps, float(options.power)) + end;
  }
  Json config() const override {
    return schedule_config({{"initial_learning_rate", initial}, {"decay_steps", decay_steps}},
                           options);
  }
};

struct CosineSchedule : LearningRateSchedule {
  double initial, decay_steps;
  CosineDecayOptions options;

  CosineSchedule(double initial_, double steps, CosineDecayOptions options_)
      : initial(initial_), decay_steps(steps), options(std::move(options_)) {
    check_steps(class_name(), "decay_steps", steps);
  }
  std::string class_name() const override { return "CosineDecay"; }
  double operator()(int64_t step) const override {
    const auto first = float(initial), steps = float(decay_steps);
    if (!options.warmup_target) return decayed(std::min(float(step), steps), first);
    const auto target = float(*options.warmup_target), warmup = float(options.warmup_steps);
    const float at = std::min(float(step), steps + warmup);
    if (at < warmup) return (target - first) * (at / warmup) + first;
    return decayed(at - warmup, target);
  }
  Json config() const override {
    return schedule_config({{"initial_learning_rate", initial}, {"decay_steps", decay_steps}},
                           options);
  }

 private:
  float decayed(float at, float from) const {
    const float cosine = 0.5f * (1 + std::cos(pi * (at / float(decay_steps))));
    return from * (float(1 - options.alpha) * cosine + float(options.alpha));
  }
};

struct CosineRestartsSchedule : LearningRateSchedule {
  double initial, first_steps;
  CosineDecayRestartsOptions options;

  CosineRestartsSchedule(double initial_, double steps, CosineDecayRestartsOptions options_)
      : initial(initial_), first_steps(steps), options(std::move(options_)) {
    check_steps(class_name(), "first_decay_steps", steps);
  }
  std::string class_name() const override { return "CosineDecayRestarts"; }
  double operator()(int64_t step) const override {
    const auto growth = float(options.t_mul), alpha = float(options.alpha);
    float at = float(step) / float(first_steps);
    float period = std::floor(at);
    if (growth == 1) {
      at -= period;
    } else {
      period = std::floor(std::log(1 - at * (1 - growth)) / std::log(growth));
      const float length = std::pow(growth, period);
      at = (at - (1 - length) / (1 - growth)) / length;
    }
    const float cosine = 0.5f * std::pow(float(options.m_mul), period) * (1 + std::cos(pi * at));
    return float(initial) * ((1 - alpha) * cosine + alpha);
  }
  Json config() const override {
    return schedule_config({{"initial_learning_rate", initial}, {"first_decay_steps", first_steps}},
                           options);
  }
};

template <class Schedule, class... Args>
std::shared_ptr<const LearningRateSchedule> make(Args&&... args) {
  return std::make_shared<const Schedule>(std::forward<Args>(args)...);
}

}  // namespace

ExponentialDecay::ExponentialDecay(double initial_learning_rate, double decay_steps,
                                   double decay_rate, ExponentialDecayOptions options)
    : LearningRateScheduleHandle(
          make<ExponentialSchedule>(initial_learning_rate, decay_steps, decay_rate, options)) {}

PiecewiseConstantDecay::PiecewiseConstantDecay(std::vector<int64_t> boundaries,
                                               std::vector<double> values,
                                               PiecewiseConstantDecayOptions options)
    : LearningRateScheduleHandle(make<PiecewiseSchedule>(boundaries, values, options)) {}

PolynomialDecay::PolynomialDecay(double initial_learning_rate, double decay_steps,
                                 PolynomialDecayOptions options)
    : LearningRateScheduleHandle(
          make<PolynomialSchedule>(initial_learning_rate, decay_steps, options)) {}

InverseTimeDecay::InverseTimeDecay(double initial_learning_rate, double decay_steps,
                                   double decay_rate, InverseTimeDecayOptions options)
    : LearningRateScheduleHandle(
          make<InverseTimeSchedule>(initial_learning_rate, decay_steps, decay_rate, options)) {}

CosineDecay::CosineDecay(double initial_learning_rate, double decay_steps,
                         CosineDecayOptions options)
    : LearningRateScheduleHandle(
          make<CosineSchedule>(initial_learning_rate, decay_steps, options)) {}

CosineDecayRestarts::CosineDecayRestarts(double initial_learning_rate, double first_decay_steps,
                                         CosineDecayRestartsOptions options)
    : LearningRateScheduleHandle(
          make<CosineRestartsSchedule>(initial_learning_rate, first_decay_steps, options)) {}

}  // namespace tessera
