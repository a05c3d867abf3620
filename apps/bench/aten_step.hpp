#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace tessera::bench {

/// The training step of bench_step written directly on ATen: one device, no tape, layouts or plans.
/// The difference to Tessera's step is Tessera's overhead.
class AtenStep {
 public:
  /// `sizes`: inputs, units of the hidden layers, classes.
  explicit AtenStep(const std::vector<int64_t>& sizes);
  /// Runs one step of Adam on images (n, inputs) and labels (n); returns the loss.
  double operator()(const at::Tensor& x, const at::Tensor& y);

 private:
  std::vector<at::Tensor> backward(const std::vector<at::Tensor>& activations, at::Tensor dy) const;

  std::vector<at::Tensor> weights_;  ///< kernel, bias, kernel, ...
  std::vector<at::Tensor> momenta_, velocities_, steps_;
};

}  // namespace tessera::bench
