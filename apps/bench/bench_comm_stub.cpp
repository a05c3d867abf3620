#include <tessera/framework/base/error.hpp>

#include "apps/bench/bench.hpp"

namespace tessera::bench {

int bench_comm(int, const char* const*) {
  throw ConfigError("bench comm", "processes exchange tensors over Gloo", "a build without Gloo",
                    "install libgloo-dev and configure with -DTESSERA_GLOO=ON");
}

}  // namespace tessera::bench
