#include <tessera/layers/activation.hpp>

namespace tessera {

Json ActivationLayer::config() const {
  Json json = Layer::config();
  json["activation"] = activation_.name();
  return json;
}

}  // namespace tessera
