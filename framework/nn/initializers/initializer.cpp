#include <tessera/framework/nn/initializers/initializer.hpp>

#include <tessera/framework/nn/config/from_config.hpp>

namespace tessera {

using namespace detail;

ConfigFactories<InitializerHandle>& detail::initializer_factories() {
  static ConfigFactories<InitializerHandle> factories;
  return factories;
}

InitializerHandle detail::make_initializer(const std::string& name) {
  return make_default("initializer", initializer_factories(), name);
}

InitializerHandle::InitializerHandle(const std::string& name)
    : InitializerHandle(make_initializer(name)) {}

}  // namespace tessera
