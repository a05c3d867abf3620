#pragma once

#include <exception>
#include <string>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Ends a step whose loss is not finite before it changes any weight.
class NonFiniteLoss : public std::exception {
 public:
  NonFiniteLoss(double loss, std::string devices) : loss_(loss), devices_(std::move(devices)) {}
  const char* what() const noexcept override { return "the loss is not finite"; }
  double loss() const { return loss_; }
  /// Those whose part of the loss it is, "cpu:1"; empty if it is all of them.
  const std::string& devices() const { return devices_; }

 private:
  double loss_;
  std::string devices_;
};

/// Throws NonFiniteLoss unless all parts of the loss, which lie in the host memory of this process,
/// are finite. Other losses are left to who reads them.
void check_parts(const DTensor& loss);

/// Where infinite numbers or NaN come from: a weight, which an earlier step left so, a row of the
/// batch, or the step itself.
std::string source_of_non_finite(const Layer& model, const Batch& batch);

}  // namespace tessera::detail
