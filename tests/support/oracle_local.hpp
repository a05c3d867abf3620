#pragma once

#include <vector>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::test {

using namespace detail;

using Ranges = std::vector<Interval>;

/// All of a tensor.
Ranges whole_range(const Shape& shape);

/// Global shapes and dtypes.
Specs specs_of(const std::vector<at::Tensor>& tensors);

/// forward on one block, without the runtime: of each whole input the part `in` is at hand; what a
/// window reads beyond that is NaN, or the lowest number. An empty output or an empty reduction is
/// what the dispatcher is to make of it. May throw what ATen throws.
Tensors run_local(const OpInfo& info, const void* op, const std::vector<at::Tensor>& whole,
                  const std::vector<Ranges>& in, const std::vector<Ranges>& out);

}  // namespace tessera::test
