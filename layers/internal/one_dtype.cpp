#include <tessera/layers/internal/one_dtype.hpp>

#include <tessera/framework/ops/elementwise.hpp>

namespace tessera::detail {

Inputs with_one_dtype(Inputs inputs, at::ScalarType compute) {
  at::ScalarType common = inputs[0].dtype();
  for (const DTensor& input : inputs) common = c10::promoteTypes(common, input.dtype());
  if (at::isFloatingType(common)) common = compute;
  for (DTensor& input : inputs) {
    if (input.dtype() != common) input = ops::cast(input, common);
  }
  return inputs;
}

}  // namespace tessera::detail
