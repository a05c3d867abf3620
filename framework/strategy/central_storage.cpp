#include <tessera/framework/strategy/central_storage.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/mesh/internal/weight_placement.hpp>
#include <tessera/framework/strategy/internal/devices.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

constexpr const char* central_name = "CentralStorageStrategy";

/// Weights rest whole on one device, and operations read them in the layouts that they would rest
/// in without it. Slots rest with them, so what the rules say of slots does not count.
class CentralPlacement final : public WeightPlacement {
 public:
  /// A mesh of another name than the batch's is never equal to it.
  explicit CentralPlacement(Device device) : storage_(create_mesh({{"storage", 1}}, {device})) {}
  Placement rest(const Placement& wanted) const override {
    Placement placement = wanted;
    if (!placement.use) placement.use = wanted.layout;
    placement.layout = Layout::replicated(storage_, wanted.layout.rank());
    placement.slots = std::nullopt;
    return placement;
  }
  std::string describe() const override { return "weights rest on mesh " + storage_.describe(); }

 private:
  Mesh storage_;
};

}  // namespace

struct CentralStorageStrategy::Devices {
  explicit Devices(const CentralStorageOptions& options)
      : compute(devices_named(str(central_name, ", compute_devices"), options.compute_devices)) {
    const int processes = process_count();
    if (processes > 1) {
      throw ConfigError(central_name, "variables of one process rest on one of its devices",
                        str("a run of ", processes, " processes"),
                        "use MultiWorkerMirroredStrategy, or start one process");
    }
    if (!options.parameter_device.empty()) {
      parameter = device_named(str(central_name, ", parameter_device"), options.parameter_device);
    } else if (compute.size() == 1) {
      parameter = compute[0];
    }
  }

  Mesh mesh() const {
    const auto replicas = static_cast<int64_t>(compute.size());
    return with_weight_placement(create_mesh({{"batch", replicas}}, compute),
                                 std::make_shared<CentralPlacement>(parameter));
  }

  std::vector<Device> compute;
  Device parameter = {};
};

CentralStorageStrategy::CentralStorageStrategy(const CentralStorageOptions& options)
    : CentralStorageStrategy(Devices(options)) {}

CentralStorageStrategy::CentralStorageStrategy(const Devices& devices)
    : Strategy(central_name, devices.mesh()), parameter_device_(to_string(devices.parameter)) {}

}  // namespace tessera::strategy
