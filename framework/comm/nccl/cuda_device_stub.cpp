#include <tessera/framework/comm/nccl/cuda_device.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

int cuda_device_count() { return 0; }

const CudaDevice& cuda_device(int index) {
  throw ConfigError("device", "this build of Tessera runs on CPUs", str("cuda:", index),
                    "use virtual_cpus(), --device cpu of the applications");
}

}  // namespace tessera::detail
