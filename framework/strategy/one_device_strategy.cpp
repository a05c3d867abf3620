#include <tessera/framework/strategy/one_device_strategy.hpp>

#include <tessera/framework/strategy/internal/devices.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

OneDeviceStrategy::OneDeviceStrategy(const std::string& device)
    : Strategy("OneDeviceStrategy",
               create_mesh({{"batch", 1}}, {parse_device("OneDeviceStrategy, device", device)})) {}

}  // namespace tessera::strategy
