#include <tessera/framework/base/error.hpp>

#include "apps/mnist/strategies.hpp"

namespace tessera::mnist {

Distribution parameter_servers(const StrategyFlags&, const app::CommonOptions&) {
  throw ConfigError("--strategy", "parameter servers need a build with gRPC", "one without",
                    "install libgrpc++-dev and protobuf-compiler-grpc, and build again");
}

}  // namespace tessera::mnist
