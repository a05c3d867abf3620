#pragma once

#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>
#include <tessera/optimizers/optimizers.hpp>

namespace tessera::test {

using Names = std::vector<std::string>;

/// A weight (6, 4) of distinct float64 numbers.
inline Variable matrix(const std::string& path, const Layout& layout) {
  const at::Tensor value = at::linspace(-1, 2, 24, at::kDouble).reshape({6, 4});
  return Variable(path, pack(value, layout));
}

/// Returns the last components of the paths of a variable's slots.
inline Names slot_names(const OptimizerHandle& optimizer, const Variable& variable) {
  Names names;
  for (const Variable& slot : optimizer->variables_of(variable)) {
    names.push_back(slot.path().substr(slot.path().rfind('/') + 1));
  }
  return names;
}

}  // namespace tessera::test
