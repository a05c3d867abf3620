#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/mesh/device.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera::detail {

/// Reduces tensors on several GPUs of this process.
class DeviceReducer {
 public:
  virtual ~DeviceReducer() = default;
  /// Reduces all inputs, of one shape and dtype; returns the result on the GPU of each input.
  /// Inputs are only read. Throws CommError on failure.
  virtual std::vector<at::Tensor> all_reduce_each(Reduce kind,
                                                  const std::vector<at::Tensor>& inputs) = 0;
};

/// Returns a reducer that uses NCCL: one group of calls on the GPUs' communication streams, without
/// blocking the thread. Throws ConfigError if NCCL is missing.
std::shared_ptr<DeviceReducer> make_nccl_devices();

}  // namespace tessera::detail
