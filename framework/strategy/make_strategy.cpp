#include <tessera/framework/strategy/make_strategy.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/strategy/central_storage.hpp>
#include <tessera/framework/strategy/mirrored_strategy.hpp>
#include <tessera/framework/strategy/multi_worker_mirrored_strategy.hpp>
#include <tessera/framework/strategy/one_device_strategy.hpp>
#include <tessera/framework/strategy/tpu_strategy.hpp>

namespace tessera {

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names = {
      "default", "one_device", "mirrored", "multi_worker_mirrored", "central_storage", "tpu"};
  return names;
}

}  // namespace tessera

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

constexpr const char* where_devices = "make_strategy, devices";

std::vector<std::string> virtual_devices(std::optional<int64_t> devices) {
  std::vector<std::string> names;
  if (!devices) return names;
  for (Device device : virtual_cpus(*devices)) names.push_back(to_string(device));
  return names;
}

void check_one(const std::string& name, std::optional<int64_t> devices) {
  if (devices.value_or(1) == 1) return;
  throw ConfigError(where_devices, in_quotes(name) + " has one device", str(*devices),
                    "leave it out, or choose \"mirrored\"");
}

}  // namespace

std::shared_ptr<const Strategy> make_strategy(const std::string& name,
                                              std::optional<int64_t> devices) {
  if (devices && *devices < 1) {
    throw ConfigError(where_devices, "a strategy needs at least one device", str(*devices),
                      "pass 1 or more");
  }
  if (name == "mirrored") {
    return std::make_shared<MirroredStrategy>(MirroredOptions{.devices = virtual_devices(devices)});
  }
  if (name == "multi_worker_mirrored") {
    return std::make_shared<MultiWorkerMirroredStrategy>(
        MultiWorkerMirroredOptions{.devices_per_worker = devices.value_or(1)});
  }
  if (name == "central_storage") {
    return std::make_shared<CentralStorageStrategy>(
        CentralStorageOptions{.compute_devices = virtual_devices(devices)});
  }
  if (name == "tpu") return std::make_shared<TPUStrategy>();
  if (name == "one_device") {
    check_one(name, devices);
    return std::make_shared<OneDeviceStrategy>("cpu:0");
  }
  if (name == "default") {
    check_one(name, devices);
    // A static object: the pointer needs no owner.
    return {std::shared_ptr<const Strategy>(), &default_strategy()};
  }
  throw ConfigError("make_strategy, name", "one of tf.distribute's strategies", in_quotes(name),
                    suggestion(name, strategy_names()));
}

}  // namespace tessera::strategy
