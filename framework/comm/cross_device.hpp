#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/mesh/device.hpp>

namespace tessera {

namespace detail {
class DeviceReducer;
}  // namespace detail

/// The algorithm by which the devices of one process all-reduce (tf.distribute.CrossDeviceOps). It
/// determines how data travels and the order of additions, so results differ by rounding only.
/// Virtual CPUs that share a block have nothing to reduce.
struct CrossDeviceOps {
  enum class Kind : uint8_t { nccl_all_reduce, hierarchical_copy, reduction_to_one_device };
  Kind kind = Kind::reduction_to_one_device;
  /// Number of equal packs a value is split into, reduced one after the other; 0 is the same as 1.
  int64_t num_packs = 1;
  /// "cpu:0", "cuda:1" (default: the first device of the reduction).
  std::string reduce_to_device = "";
};

/// NCCL's all-reduce between GPUs (tf.distribute.NcclAllReduce), in NCCL's own order of additions.
/// If a device is a CPU, warns and uses ReductionToOneDevice, like TensorFlow. TensorFlow's
/// num_packs counts packs of all gradients together; here gradients are joined beforehand.
struct NcclAllReduce : CrossDeviceOps {
  explicit NcclAllReduce(int64_t packs = 1);
};

/// Sums pairs in a tree, then copies the result to all devices: five devices compute
/// ((0 + 1) + (2 + 3)) + 4, each sum on the device of its first operand
/// (tf.distribute.HierarchicalCopyAllReduce, whose hierarchy is fixed to the eight GPUs of a
/// DGX-1).
struct HierarchicalCopyAllReduce : CrossDeviceOps {
  explicit HierarchicalCopyAllReduce(int64_t packs = 1);
};

/// Copies all values to one device, which sums them in order, then copies the result to all
/// (tf.distribute.ReductionToOneDevice, without its accumulation_fn).
struct ReductionToOneDevice : CrossDeviceOps {
  explicit ReductionToOneDevice(const std::string& device = "");
};

namespace detail {

/// Returns a communicator for a mesh of these devices, all of this process: reductions use `ops`,
/// all else is as in local_communicator(). Throws ConfigError for a negative number of packs, a GPU
/// named twice with NcclAllReduce, or a GPU that cannot be used; MeshError for an invalid
/// reduce_to_device.
std::shared_ptr<Communicator> cross_device_communicator(const CrossDeviceOps& ops,
                                                        const std::vector<Device>& devices);

/// Returns the communicator as a DeviceReducer, which leaves a result on the device of each input;
/// null if it is none.
DeviceReducer* device_reducer(Communicator& communicator);

}  // namespace detail

}  // namespace tessera
