#pragma once

#include <map>
#include <string>

#include <tessera/framework/ops/resample.hpp>

namespace tessera::detail {

/// Returns the interpolations of ops::resample() by Keras' names. "nearest" is handled separately.
inline const std::map<std::string, ops::Interpolation>& interpolations() {
  static const std::map<std::string, ops::Interpolation> all = {
      {"bicubic", ops::Interpolation::bicubic},
      {"bilinear", ops::Interpolation::bilinear},
      {"lanczos3", ops::Interpolation::lanczos3},
      {"lanczos5", ops::Interpolation::lanczos5}};
  return all;
}

}  // namespace tessera::detail
