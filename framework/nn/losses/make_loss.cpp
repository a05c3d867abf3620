#include <tessera/framework/nn/config/from_config.hpp>
#include <tessera/framework/nn/losses/losses.hpp>

namespace tessera {

using namespace detail;

ConfigFactories<LossHandle>& detail::loss_factories() {
  static ConfigFactories<LossHandle> factories;
  return factories;
}

LossHandle detail::make_loss(const std::string& name, const JsonObject& options) {
  return make_by_name("loss", loss_factories(), name, options);
}

LossHandle detail::make_loss(const std::string& name) {
  const Json defaults = Json::object();
  return make_loss(name, JsonObject(defaults, JsonPath("loss")));
}

LossHandle loss_from_config(const Json& json, const std::string& where) {
  if (json.is_string()) return make_loss(json.get<std::string>());
  const auto [name, options] = read_serialized(json, JsonPath(where));
  return make_loss(name, options);
}

std::vector<std::string> detail::loss_names() { return names_in(loss_factories()); }

LossHandle::LossHandle(const char* name) : LossHandle(make_loss(name)) {}

}  // namespace tessera
