#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/comm/cross_device.hpp>
#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// The options of MirroredStrategy.
struct MirroredOptions {
  /// One replica each: "/gpu:0", "cuda:1", "cpu:0". None: all GPUs, or one CPU without them.
  std::vector<std::string> devices = {};
  /// How gradients are added up: NcclAllReduce(), HierarchicalCopyAllReduce(),
  /// ReductionToOneDevice(). Absent: as the devices allow.
  std::optional<CrossDeviceOps> cross_device_ops = std::nullopt;
};

/// Every device of this process holds all weights and computes on its part of a batch
/// (tf.distribute.MirroredStrategy).
class MirroredStrategy final : public Strategy {
 public:
  /// Throws MeshError for a device that there is not, or one named twice.
  explicit MirroredStrategy(const MirroredOptions& options = {});
};

}  // namespace tessera::strategy
