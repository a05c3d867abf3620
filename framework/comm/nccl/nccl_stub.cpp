#include <tessera/framework/comm/nccl/nccl_engine.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::shared_ptr<Engine> make_nccl_engine(const NcclOptions& options) {
  throw ConfigError("nccl", "this build of Tessera runs on CPUs", str("cuda:", options.device),
                    "use virtual_cpus(), --device cpu of the applications, or build the preset "
                    "cuda");
}

}  // namespace tessera::detail
