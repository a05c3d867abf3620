#pragma once

#include <memory>
#include <string>

#include <ATen/ATen.h>

#include <tessera/framework/tensor/create.hpp>

#include "tests/support/difference.hpp"
#include "tests/support/virtual_meshes.hpp"

/// Values on a 2 x 2 mesh, for tests of tapes.
namespace tessera::test::grid {

inline const Mesh& mesh() {
  static const Mesh two_by_two = create_mesh({{"batch", 2}, {"model", 2}});
  return two_by_two;
}

inline at::Tensor numbers(Shape shape, uint64_t seed) {
  return random_values({std::move(shape), at::kDouble}, seed);
}

/// Returns a value tagged like that of a trainable Variable.
inline DTensor variable(const at::Tensor& full, const LayoutSpec& spec) {
  using namespace detail;
  const DTensor value = pack(full, Layout(spec, mesh()));
  value.set_tag(std::make_shared<VariableTag>(VariableTag{DTensor::next_id()}));
  return value;
}

inline std::string same(const DTensor& actual, const at::Tensor& expected) {
  return difference(actual.full(), expected, 1e-10, 1e-12);
}

}  // namespace tessera::test::grid
