#pragma once

#include <string>
#include <vector>

#include <tessera/framework/strategy/strategy.hpp>

namespace tessera::strategy {

/// The options of CentralStorageStrategy.
struct CentralStorageOptions {
  /// "/gpu:0", "cpu:1": the replicas. Empty: all GPUs, else one CPU.
  std::vector<std::string> compute_devices = {};
  /// Where variables rest. Empty: the CPU; beside a single compute device, that one.
  std::string parameter_device = "";
};

/// Environment rest on one device, the computation runs on all (tf.distribute.experimental's
/// CentralStorageStrategy): weights and optimizer slots lie once, on the parameter device; a step
/// copies weights to the compute devices, adds up gradients over them and updates where the weights
/// rest. The numbers are MirroredStrategy's.
///
/// Environment are read with read(), not value(), in loops of one's own. Virtual CPUs share memory,
/// so that nothing is copied between them. For one process.
class CentralStorageStrategy : public Strategy {
 public:
  /// Throws MeshError for what is no device of this process, or devices that repeat or are of both
  /// kinds; ConfigError in a run of several processes.
  explicit CentralStorageStrategy(const CentralStorageOptions& options = {});

  /// What variables rest on, "cpu:0".
  const std::string& parameter_device() const { return parameter_device_; }

 private:
  struct Devices;
  explicit CentralStorageStrategy(const Devices& devices);

  std::string parameter_device_;
};

}  // namespace tessera::strategy
