#include <tessera/layers/internal/wrapper.hpp>

namespace tessera::detail {

std::shared_ptr<Layer> WrapperLayer::add_inner(const std::string& attribute,
                                               const LayerHandle& handle) {
  return track(attribute, handle).layer();
}

}  // namespace tessera::detail
