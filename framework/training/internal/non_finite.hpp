#pragma once

#include <exception>
#include <string>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/nn/layer.hpp>

namespace tessera::detail {

/// Checks that a running fit makes; outside of fit, none.
struct FiniteChecks {
  bool loss = false;       ///< whether a loss that is not finite is an error
  bool gradients = false;  ///< whether gradients that are not finite are one
};

/// Thrown in a step whose loss is not finite, before it changes any weight.
class NonFiniteLoss : public std::exception {
 public:
  NonFiniteLoss(double loss, std::string devices) : loss_(loss), devices_(std::move(devices)) {}
  const char* what() const noexcept override { return "the loss is not finite"; }
  double loss() const { return loss_; }
  /// Returns the devices whose partial sum of the loss is not finite, "cpu:1"; empty if it is all.
  const std::string& devices() const { return devices_; }

 private:
  double loss_;
  std::string devices_;
};

/// Throws NonFiniteLoss unless all blocks of a loss on a mesh of this process alone are finite.
/// Checks only losses on CPUs; others, and those of several processes, are checked when they are
/// read.
void check_finite_blocks(const DTensor& loss);

/// Returns the source of infinities or NaN: a weight (from an earlier step), a row of the batch, or
/// the step itself.
std::string source_of_non_finite(const Layer& model, const Batch& batch);

}  // namespace tessera::detail
