#pragma once

#include <string>
#include <vector>

#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// The options of CentralStorageStrategy.
struct CentralStorageOptions {
  /// Devices of the replicas, "/gpu:0" or "cpu:1" (default: all GPUs, or one CPU without any).
  std::vector<std::string> compute_devices = {};
  /// Device that stores variables (default: the CPU, or the compute device if there is only one).
  std::string parameter_device = "";
};

/// Stores variables on one device and computes on all (tf.distribute.experimental's
/// CentralStorageStrategy). The parameter device holds the only copy of weights and optimizer
/// slots; a step copies weights to the compute devices, sums gradients over them and updates the
/// weights on the parameter device. Results are the same as MirroredStrategy's.
///
/// Custom loops read variables with read(), not value(). Virtual CPUs share memory, so nothing is
/// copied between them. Single-process only.
class CentralStorageStrategy : public Strategy {
 public:
  /// Throws MeshError for names that are not devices of this process, repeat, or mix CPUs and GPUs;
  /// ConfigError in a run of several processes.
  explicit CentralStorageStrategy(const CentralStorageOptions& options = {});

  /// Returns the device that stores variables, such as "cpu:0".
  const std::string& parameter_device() const { return parameter_device_; }

 private:
  struct Devices;
  explicit CentralStorageStrategy(const Devices& devices);

  std::string parameter_device_;
};

}  // namespace tessera::strategy
