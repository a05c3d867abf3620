#pragma once

#include <functional>
#include <string>
#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

/// Checks of functions composed of several operations; the oracle checks each operation.
namespace tessera::test {

using namespace detail;

using Function = std::function<DTensor(const std::vector<DTensor>&)>;

/// Runs `function` on meshes of 1, 2, 3 and 2 by 2 devices, in every layout of the inputs (of many:
/// a random selection), floating ones also as partial sums, with one block a device and by default.
/// Empty if each result is `expected` within `tolerance`, absolute and relative; else the first
/// that is not. A tolerance of 0 skips partial layouts, as their sums round.
std::string wrong_values(const std::vector<at::Tensor>& inputs, const Function& function,
                         const at::Tensor& expected, double tolerance = 1e-12);

/// Compares the gradients of sum(weights · function) with central differences on one device, for
/// every floating input (float64), in the layouts of wrong_values(). Empty if they agree and each
/// has its input's layout.
std::string wrong_gradients(const std::vector<at::Tensor>& inputs, const Function& function);

}  // namespace tessera::test
