#include <tessera/framework/strategy/tpu_strategy.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

TPUStrategy::TPUStrategy(const std::string& tpu) : Strategy("TPUStrategy", Mesh()) {
  throw ConfigError("TPUStrategy", "devices are CPUs and GPUs, as libtorch without XLA has no TPU",
                    tpu.empty() ? "a strategy for TPUs" : "TPU " + in_quotes(tpu),
                    "use MirroredStrategy on one host, MultiWorkerMirroredStrategy on several");
}

}  // namespace tessera::strategy
