#include <tessera/layers/internal/conv_base.hpp>

#include <tessera/framework/ops/conv.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera::detail {

DTensor depthwise_conv(const DTensor& x, const DTensor& kernel,
                       const std::vector<WindowAxis>& axes) {
  // Treats every channel as a group.
  const auto spatial = static_cast<int64_t>(axes.size());
  const DTensor y =
      ops::conv(ops::expand_dims(x, x.rank()), ops::expand_dims(kernel, spatial), axes);
  return ops::flatten(y, spatial + 1);
}

}  // namespace tessera::detail
