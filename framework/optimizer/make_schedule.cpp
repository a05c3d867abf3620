#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/optimizer/learning_rate.hpp>

namespace tessera {

using namespace detail;

ConfigFactories<LearningRateScheduleHandle>& detail::schedule_factories() {
  static ConfigFactories<LearningRateScheduleHandle> factories;
  return factories;
}

LearningRateScheduleHandle schedule_from_config(const Json& json, const std::string& where) {
  const JsonPath path(where);
  auto [name, config] = read_serialized(json, path);
  return made_from("schedule", schedule_factories(), name, std::move(config), path);
}

std::vector<std::string> detail::schedule_names() { return names_in(schedule_factories()); }

}  // namespace tessera
