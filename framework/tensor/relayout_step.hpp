#pragma once

#include <tessera/framework/tensor/relayout.hpp>

namespace tessera {

/// Carries out one step of a relayout on a value whose layout is the one before it. Collective,
/// except for a slice.
DTensor run_step(const DTensor& value, const RelayoutStep& step);

}  // namespace tessera
