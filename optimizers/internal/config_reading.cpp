#include <tessera/optimizers/internal/config_reading.hpp>

#include <tessera/optimizers/schedules/schedules.hpp>

namespace tessera {

LearningRate take_learning_rate(JsonObject& config, double otherwise) {
  const Json json = config.take_or<Json>("learning_rate", otherwise);
  const JsonPath path = config.path().key("learning_rate");
  if (json.is_object()) return schedule_from_config(json, path.text());
  return json_as<double>(json, path);
}

}  // namespace tessera
