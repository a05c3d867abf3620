#pragma once

#include <cstdint>

#include <tessera/tessera.hpp>

namespace tessera::bench {

/// ResNet-50 as in keras.applications, without biases, for images (pixels, pixels, 3) of ten
/// classes. peers/torch_networks.py has the same network.
Functional resnet50(int64_t pixels);
/// MobileNetV2 as in keras.applications, for such images.
Functional mobilenet_v2(int64_t pixels);

}  // namespace tessera::bench
