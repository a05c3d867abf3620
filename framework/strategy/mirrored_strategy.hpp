#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/comm/cross_device.hpp>
#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// The options of MirroredStrategy.
struct MirroredOptions {
  /// Devices, one per replica: "/gpu:0", "cuda:1", "cpu:0" (default: all GPUs, or one CPU without
  /// any).
  std::vector<std::string> devices = {};
  /// All-reduce of gradients: NcclAllReduce(), HierarchicalCopyAllReduce() or
  /// ReductionToOneDevice() (default: depends on the devices).
  std::optional<CrossDeviceOps> cross_device_ops = std::nullopt;
};

/// Replicates weights on all devices of this process; each computes on its shard of a batch
/// (tf.distribute.MirroredStrategy).
class MirroredStrategy final : public Strategy {
 public:
  /// Throws MeshError for a device that does not exist or is named twice.
  explicit MirroredStrategy(const MirroredOptions& options = {});
};

}  // namespace tessera::strategy
