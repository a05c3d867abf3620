#pragma once

#include <chrono>
#include <optional>

#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// What carries values between workers (tf.distribute.experimental.CommunicationImplementation).
/// `ring`: Gloo and shared memory, between CPUs; `nccl`: NCCL, between GPUs; `automatic`: nccl
/// where this process has a GPU, else ring.
enum class CommunicationImplementation : uint8_t { automatic, ring, nccl };

/// tf.distribute.experimental.CommunicationOptions. How many bytes of gradients are sent at once is
/// CompileOptions::bucket_cap_mb.
struct CommunicationOptions {
  /// What carries values between workers; automatic: by whether this process has a GPU.
  CommunicationImplementation implementation = CommunicationImplementation::automatic;
  /// How long a process that others wait for is given; absent: DistributedOptions::timeout.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
};

/// The options of MultiWorkerMirroredStrategy.
struct MultiWorkerMirroredOptions {
  CommunicationOptions communication_options = {};  ///< how workers exchange values
  /// Replicas on each worker: virtual CPUs, or GPUs.
  int64_t devices_per_worker = 1;
  /// What beats the environment, and patience. `devices` and `device_type` are not read.
  DistributedOptions distributed = {};
};

/// Mirrored over the devices of all chief and worker tasks that TF_CONFIG, or what else
/// find_cluster() reads, names (tf.distribute.MultiWorkerMirroredStrategy); without any, of this
/// process.
class MultiWorkerMirroredStrategy final : public Strategy {
 public:
  /// Collective. Without GPUs `nccl` goes on as `ring`, with a warning, as TensorFlow does. Throws
  /// as create_distributed_mesh() does, ConfigError also for less than one device.
  explicit MultiWorkerMirroredStrategy(const MultiWorkerMirroredOptions& options = {});
};

}  // namespace tessera::strategy
