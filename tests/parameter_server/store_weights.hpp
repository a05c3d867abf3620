#pragma once

#include <string>
#include <vector>

#include <ATen/ATen.h>

#include <tessera/framework/nn/initializers/constraints.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/tensor/create.hpp>

#include "tests/support/layouts.hpp"

namespace tessera::test {

/// The weights of a program, equal in each call: uneven parts, a scalar, one that is not trained.
inline std::vector<Variable> make_weights() {
  const Mesh mesh = create_mesh({{"batch", 1}});
  const DefaultMeshScope scope(mesh);
  std::vector<Variable> made;
  const auto add = [&](const std::string& path, const Shape& shape, at::ScalarType dtype,
                       const ConstraintHandle& constraint = {}) {
    VariableSpec spec{path, shape, dtype, {}};
    spec.constraint = constraint;
    made.emplace_back(spec);
    const at::Tensor values =
        small_integers(shape, static_cast<int64_t>(made.size()), dtype).div(8).to(dtype);
    made.back().assign(pack(values, Layout::replicated(mesh, values.dim())));
  };
  add("dense/kernel", {7, 3}, at::kDouble);
  add("dense/bias", {5}, at::kDouble);
  add("dense/scale", {}, at::kDouble);
  add("dense/gain", {4}, at::kDouble, NonNeg());
  add("dense/table", {6, 2}, at::kDouble);
  add("dense/count", {3}, at::kLong);
  made.back().set_trainable(false);
  return made;
}

}  // namespace tessera::test
