#pragma once

#include <chrono>
#include <optional>

#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// Communication library between workers (tf.distribute.experimental.CommunicationImplementation).
/// `ring`: Gloo and shared memory, for CPUs; `nccl`: NCCL, for GPUs; `automatic`: nccl if this
/// process has a GPU, ring otherwise.
enum class CommunicationImplementation : uint8_t { automatic, ring, nccl };

/// Options of the communication between workers (tf.distribute.experimental.CommunicationOptions).
/// The size of gradient buckets is CompileOptions::bucket_cap_mb.
struct CommunicationOptions {
  /// The library to use.
  CommunicationImplementation implementation = CommunicationImplementation::automatic;
  /// Timeout of a process that others wait for (default: DistributedOptions::timeout).
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

/// The options of MultiWorkerMirroredStrategy.
struct MultiWorkerMirroredOptions {
  CommunicationOptions communication_options = {};  ///< communication between workers
  /// Number of replicas on each worker: GPUs, or virtual CPUs.
  int64_t devices_per_worker = 1;
  /// Cluster settings, which override the environment, and timeouts. `devices` and `device_type`
  /// are ignored.
  DistributedOptions distributed = {};
};

/// Replicates weights on the devices of all chief and worker tasks of the cluster
/// (tf.distribute.MultiWorkerMirroredStrategy). find_cluster() reads the cluster from TF_CONFIG or
/// its other sources; without any it is this process alone.
class MultiWorkerMirroredStrategy final : public Strategy {
 public:
  /// Collective. Without GPUs `nccl` falls back to `ring`, with a warning, as in TensorFlow. Throws
  /// what create_distributed_mesh() throws, and ConfigError for less than one device.
  explicit MultiWorkerMirroredStrategy(const MultiWorkerMirroredOptions& options = {});
};

}  // namespace tessera::strategy
