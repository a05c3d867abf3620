#include <tessera/framework/strategy/central_storage.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/mesh/internal/weight_placement.hpp>
#include <tessera/framework/strategy/internal/devices.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

constexpr const char* central_name = "CentralStorageStrategy";

/// Stores weights on one device; operations read them in the layouts that the layout map assigns.
/// Slots are stored with their weights, so layout rules for slots have no effect.
class CentralPlacement final : public WeightPlacement {
 public:
  /// The dimension's name differs from "batch", so that the meshes are never equal.
  explicit CentralPlacement(Device device) : storage_(create_mesh({{"storage", 1}}, {device})) {}
  Placement stored_placement(const Placement& requested) const override {
    Placement placement = requested;
    if (!placement.use) placement.use = requested.layout;
    placement.layout = Layout::replicated(storage_, requested.layout.rank());
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
      : compute(parse_devices(str(central_name, ", compute_devices"), options.compute_devices)) {
    const int processes = process_count();
    if (processes > 1) {
      throw ConfigError(central_name, "central storage supports one process only",
                        str("a run of ", processes, " processes"),
                        "use MultiWorkerMirroredStrategy, or start one process");
    }
    if (!options.parameter_device.empty()) {
      parameter = parse_device(str(central_name, ", parameter_device"), options.parameter_device);
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
