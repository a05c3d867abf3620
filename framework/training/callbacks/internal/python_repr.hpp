#pragma once

#include <string>

namespace tessera::detail {

/// Returns a number as Python's repr() does, with the fewest digits that round-trip: "0.1",
/// "1e-05", "3.0", "nan". Keras writes some texts and files this way.
std::string python_repr(double value);

}  // namespace tessera::detail
