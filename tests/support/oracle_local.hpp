#pragma once

#include <vector>

#include <tessera/framework/ops/engine/op.hpp>

namespace tessera::test {

using namespace detail;

using Ranges = std::vector<Interval>;

/// Returns the intervals of a full tensor.
Ranges full_range(const Shape& shape);

/// Returns the global shapes and dtypes.
Specs specs_of(const std::vector<at::Tensor>& tensors);

/// Runs forward on one block without the runtime. Of each full input the intervals `in` are
/// available; elements that a window reads beyond them are NaN, or the lowest number. Empty outputs
/// and empty reductions are filled as by the dispatcher. May throw what ATen throws.
Tensors run_local(const OpInfo& info, const void* op, const std::vector<at::Tensor>& full,
                  const std::vector<Ranges>& in, const std::vector<Ranges>& out);

}  // namespace tessera::test
