#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/cluster/cluster.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera {

namespace detail {
class Communicator;
}  // namespace detail

/// How the processes of a run find each other and how patient they are.
struct DistributedOptions {
  /// What beats the environment.
  ClusterFlags cluster = {};
  /// Devices of this process; absent: an equal share of the mesh.
  std::optional<int64_t> devices = std::nullopt;
  /// Virtual CPUs, or the GPUs of this process; absent: GPUs where there are any.
  std::optional<Device::Type> device_type = std::nullopt;
  /// Devices of the mesh that lie on each GPU. They are as virtual CPUs: what fits into one block
  /// of memory is one.
  int64_t virtual_devices = 1;
  /// How long the first task waits until all are there.
  std::chrono::milliseconds connect_timeout = std::chrono::minutes(5);
  /// After how long a process that does not arrive where others wait is given up.
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  /// Whether ranks compare every collective before it, and not only in the first 20 steps and where
  /// the global batch's shape changes. Loops of one's own that do not tell
  /// Communicator::begin_step() of their steps are always compared.
  bool always_check = false;
  /// Whether processes of one host exchange tensors through shared memory.
  bool shared_memory = true;
};

/// A mesh over the devices of all processes of the run
/// (tf.experimental.dtensor.create_distributed_mesh): rank r of n holds the devices
/// shard_interval(size, n, r). The first call connects the processes and compares build, world
/// size and mesh; later ones, of other meshes, use the same connections. Alone, as find_cluster()
/// tells, the process holds all devices. One size may be -1, which `devices` then fixes, or without
/// it all GPUs of this process, alone, and else one device of each.
/// Collective. Throws ConfigError for a cluster that is described wrongly, for processes that
/// differ and for GPUs that are not there, CommError if not all of them come, MeshError unless each
/// process has devices, which fill a box of the mesh.
Mesh create_distributed_mesh(const MeshDims& dims, const DistributedOptions& options = {});

/// The number of processes that create_distributed_mesh() spans, before it is called.
int process_count(const DistributedOptions& options = {});

namespace detail {

/// The kind of devices that the options ask for.
Device::Type device_type_of(const DistributedOptions& options);

/// Devices of each process where neither options nor mesh say: all GPUs if it is alone, else one.
int64_t default_devices(const DistributedOptions& options);

/// Compares facts that every process of the mesh must share, such as its model and seed; returns
/// where they are equal. Throws ConfigError naming `caller` and the keys that differ, with the
/// values and ranks; the same on every rank. Collective.
void check_same_on_all_ranks(const Mesh& mesh, const std::string& caller,
                             const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace detail

}  // namespace tessera
