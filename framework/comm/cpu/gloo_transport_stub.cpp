#include <tessera/framework/comm/cpu/gloo_transport.hpp>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {

std::unique_ptr<Transport> gloo_transport(const GlooOptions& options) {
  throw CommError("gloo", "processes exchange tensors over Gloo",
                  str(options.size, " processes in a build without Gloo"),
                  "install libgloo-dev and configure with -DTESSERA_GLOO=ON");
}

}  // namespace tessera::detail
