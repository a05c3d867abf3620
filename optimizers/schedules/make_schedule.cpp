#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/optimizers/internal/config_reading.hpp>
#include <tessera/optimizers/schedules/schedules.hpp>

namespace tessera {
namespace {

/// What most schedules require: the first rate and the length of the decay.
std::pair<double, double> take_decay(JsonObject& config, const char* steps = "decay_steps") {
  const auto initial = config.take<double>("initial_learning_rate");
  return {initial, config.take<double>(steps)};
}

LearningRateScheduleRef exponential(JsonObject& config) {
  ExponentialDecayOptions options;
  take(config, "staircase", options.staircase);
  take(config, "name", options.name);
  const auto [first, steps] = take_decay(config);
  return ExponentialDecay(first, steps, config.take<double>("decay_rate"), options);
}

LearningRateScheduleRef piecewise(JsonObject& config) {
  PiecewiseConstantDecayOptions options;
  take(config, "name", options.name);
  const auto boundaries = config.take<std::vector<int64_t>>("boundaries");
  return PiecewiseConstantDecay(boundaries, config.take<std::vector<double>>("values"), options);
}

LearningRateScheduleRef polynomial(JsonObject& config) {
  PolynomialDecayOptions options;
  take(config, "end_learning_rate", options.end_learning_rate);
  take(config, "power", options.power);
  take(config, "cycle", options.cycle);
  take(config, "name", options.name);
  const auto [first, steps] = take_decay(config);
  return PolynomialDecay(first, steps, options);
}

LearningRateScheduleRef inverse_time(JsonObject& config) {
  InverseTimeDecayOptions options;
  take(config, "staircase", options.staircase);
  take(config, "name", options.name);
  const auto [first, steps] = take_decay(config);
  return InverseTimeDecay(first, steps, config.take<double>("decay_rate"), options);
}

LearningRateScheduleRef cosine(JsonObject& config) {
  CosineDecayOptions options;
  take(config, "alpha", options.alpha);
  take(config, "name", options.name);
  options.warmup_target = config.take_optional<double>("warmup_target");
  take(config, "warmup_steps", options.warmup_steps);
  const auto [first, steps] = take_decay(config);
  return CosineDecay(first, steps, options);
}

LearningRateScheduleRef cosine_restarts(JsonObject& config) {
  CosineDecayRestartsOptions options;
  take(config, "t_mul", options.t_mul);
  take(config, "m_mul", options.m_mul);
  take(config, "alpha", options.alpha);
  take(config, "name", options.name);
  const auto [first, steps] = take_decay(config, "first_decay_steps");
  return CosineDecayRestarts(first, steps, options);
}

const ConfigFactories<LearningRateScheduleRef>& factories() {
  static const ConfigFactories<LearningRateScheduleRef> all = {
      {"CosineDecay", cosine},
      {"CosineDecayRestarts", cosine_restarts},
      {"ExponentialDecay", exponential},
      {"InverseTimeDecay", inverse_time},
      {"PiecewiseConstantDecay", piecewise},
      {"PolynomialDecay", polynomial},
  };
  return all;
}

}  // namespace

LearningRateScheduleRef schedule_from_config(const Json& json, const std::string& where) {
  const JsonPath path(where);
  auto [name, config] = read_serialized(json, path);
  return made_from("schedule", factories(), name, std::move(config), path);
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& factory : factories()) names.push_back(factory.first);
  return names;
}

}  // namespace tessera
