#pragma once

#include <span>
#include <string>

#include <tessera/framework/model/model.hpp>

namespace tessera::detail {

/// The peak bytes of the values of a model's call, weights excluded, and the layer and shape of the
/// value that reaches the peak.
struct ActivationPeak {
  double bytes = 0;
  std::string layer = "";
  Shape shape = {};
};

/// An input of a model's call.
struct PeakInput {
  Shape shape;
  at::ScalarType dtype;
  Layout layout;
};

/// Finds the peak by an abstract call, without data, on inputs of these shapes, dtypes and layouts.
/// Counts the values of all devices of the mesh as on this machine, and views as values of their
/// own. Stops once there are more than `limit` bytes. Ignores values made after a layer reads
/// numbers, and temporary buffers inside operations.
ActivationPeak activation_peak(Model& model, std::span<const PeakInput> inputs, double limit);
/// Finds the peak of a model with one input.
ActivationPeak activation_peak(Model& model, const Shape& input, at::ScalarType dtype,
                               const Layout& layout, double limit);

}  // namespace tessera::detail
