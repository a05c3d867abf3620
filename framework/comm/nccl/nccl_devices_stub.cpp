#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/device_reducer.hpp>

namespace tessera::detail {

std::shared_ptr<DeviceReducer> make_nccl_devices() {
  throw ConfigError("NcclAllReduce", "this build of Tessera runs on CPUs", "GPUs",
                    "use virtual CPUs (\"cpu:0\"), or build the preset cuda");
}

}  // namespace tessera::detail
