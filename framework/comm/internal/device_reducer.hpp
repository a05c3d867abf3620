#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/mesh/device.hpp>
#include <tessera/framework/mesh/layout.hpp>

namespace tessera::detail {

/// Reduces what several GPUs of this process hold.
class DeviceReducer {
 public:
  virtual ~DeviceReducer() = default;
  /// The reduction of all parts, of one shape and dtype, on the GPU of each of them. Parts are only
  /// read. Throws CommError when it fails.
  virtual std::vector<at::Tensor> all_reduce_each(Reduce kind,
                                                  const std::vector<at::Tensor>& parts) = 0;
};

/// A reducer by NCCL, as one group of calls, on the GPUs' communication streams; nothing waits for
/// it here. Throws ConfigError where there is no NCCL.
std::shared_ptr<DeviceReducer> make_nccl_devices();

}  // namespace tessera::detail
