#pragma once

#include <string>

#include <tessera/framework/model/model.hpp>

namespace tessera::detail {

/// The most bytes that the values of a call of a model hold at one time, without its weights, and
/// the layer and the shape of the value that makes them so many.
struct ActivationPeak {
  double bytes = 0;
  std::string layer = "";
  Shape shape = {};
};

/// Found by a call without numbers: for an input of this shape and dtype, in a layout of the mesh
/// it is called on, taking each device's values as this machine's and views for values of their
/// own. Looks no further once there are more than `enough` bytes. What a layer that reads numbers
/// makes after that is left out, and so are buffers that an operation uses inside.
ActivationPeak activation_peak(Model& model, const Shape& input, at::ScalarType dtype,
                               const Layout& layout, double enough);

}  // namespace tessera::detail
