#pragma once

#include <ATen/core/Tensor.h>
#include <tessera/framework/tensor/dtensor.hpp>

#include <functional>
#include <string>
#include <vector>

namespace tessera::test {

/// A function of tensors, and the places of the inputs to differentiate it by, which are float64.
struct Differentiated {
  std::function<std::vector<DTensor>(const std::vector<DTensor>&)> run;
  std::vector<size_t> sources;
  /// Seeds the random factors of its results and the directions of its inputs.
  std::string name;
};

/// Returns what is wrong with a function's second derivatives, or an empty text if they are those
/// of central differences of the first, and on 2 by 2 devices, with the first two axes of all
/// inputs sharded, those of one device. The function is made scalar by the squares of its float64
/// results with random factors, so that linear functions have second derivatives too. Throws what
/// the function or its gradients throw.
std::string wrong_second_derivatives(const Differentiated& function,
                                     const std::vector<at::Tensor>& inputs);

}  // namespace tessera::test
