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

/// How the devices of one process add up what each of them holds (tf.distribute.CrossDeviceOps).
/// It decides how data travels and in which order addends meet, so results differ by rounding at
/// most. Virtual CPUs that share a block have nothing to add.
struct CrossDeviceOps {
  enum class Kind : uint8_t { nccl_all_reduce, hierarchical_copy, reduction_to_one_device };
  Kind kind = Kind::reduction_to_one_device;
  /// Into how many equal pieces a value is cut, which are reduced one after the other; 0 as 1.
  int64_t num_packs = 1;
  /// "cpu:0", "cuda:1"; empty: the first device that holds an addend.
  std::string reduce_to_device = "";
};

/// NCCL's all-reduce between GPUs (tf.distribute.NcclAllReduce), whose order of addends is NCCL's
/// own. Where a device is a CPU, as ReductionToOneDevice, with a warning, as TensorFlow does. There
/// num_packs counts packs of all gradients together; here gradients are joined before.
struct NcclAllReduce : CrossDeviceOps {
  explicit NcclAllReduce(int64_t packs = 1);
};

/// Sums by a tree of pairs: with five addends ((0 + 1) + (2 + 3)) + 4, each sum on the device of
/// its first addend; then copies to all (tf.distribute.HierarchicalCopyAllReduce, whose hierarchy
/// is fixed: that of the eight GPUs of a DGX-1).
struct HierarchicalCopyAllReduce : CrossDeviceOps {
  explicit HierarchicalCopyAllReduce(int64_t packs = 1);
};

/// All addends go to one device, which adds them in order; then copies to all
/// (tf.distribute.ReductionToOneDevice, without its accumulation_fn).
struct ReductionToOneDevice : CrossDeviceOps {
  explicit ReductionToOneDevice(const std::string& device = "");
};

namespace detail {

/// The communicator of a mesh of these devices, all of this process: reductions add in that way,
/// everything else is as with local_communicator(). Throws ConfigError for a negative number of
/// packs, a GPU named twice with NcclAllReduce, or one that cannot be used; MeshError for what is
/// no device.
std::shared_ptr<Communicator> cross_device_communicator(const CrossDeviceOps& ops,
                                                        const std::vector<Device>& devices);

/// What reduces parts where they lie, each on its own GPU, if that is how this communicator does
/// it; else null.
DeviceReducer* device_reducer(Communicator& communicator);

}  // namespace detail

}  // namespace tessera
