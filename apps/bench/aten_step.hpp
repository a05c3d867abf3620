#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera::bench {

/// The training step of bench_step written by hand on ATen: one device, no tape, layouts or plans.
/// What Tessera's step takes longer is what it costs.
class AtenStep {
 public:
  /// `sizes`: inputs, units of the hidden layers, classes.
  explicit AtenStep(const std::vector<int64_t>& sizes);
  /// One step of Adam on images (n, inputs) and labels (n); returns the loss.
  double operator()(const at::Tensor& x, const at::Tensor& y);

 private:
  std::vector<at::Tensor> backward(const std::vector<at::Tensor>& activations, at::Tensor dy) const;

  std::vector<at::Tensor> weights_;  ///< kernel, bias, kernel, ...
  std::vector<at::Tensor> momenta_, velocities_, steps_;
};

}  // namespace tessera::bench
