#include <tessera/framework/optimizer/learning_rate.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera {

using namespace detail;

LearningRate::LearningRate(double rate) : rate_(rate) {
  if (rate >= 0) return;
  throw ConfigError("optimizer", "learning_rate must be at least 0", str(rate),
                    "give a positive one");
}

Json LearningRate::config() const {
  if (!schedule_) return rate_;
  return {{"module", "keras.optimizers.schedules"},
          {"class_name", schedule_->class_name()},
          {"config", schedule_->config()},
          {"registered_name", nullptr}};
}

void detail::json_get(const Json& json, const JsonPath& path, LearningRate& out) {
  out = json.is_object() ? LearningRate(schedule_from_config(json, path.text()))
                         : LearningRate(json_as<double>(json, path));
}

}  // namespace tessera
