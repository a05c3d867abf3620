#include <tessera/framework/base/error.hpp>

#include "apps/bench/bench.hpp"

namespace tessera::bench {

int bench_parameter_server(int, const char* const*) {
  throw ConfigError("bench parameter-server", "a build with gRPC", "one without",
                    "install libgrpc++-dev and protobuf-compiler-grpc, and build again");
}

int parameter_server_task(int argc, const char* const* argv) {
  return bench_parameter_server(argc, argv);
}

}  // namespace tessera::bench
