#pragma once

#include <string>

namespace tessera::detail {

/// A number as Python writes it: the fewest digits that give it back, "0.1", "1e-05", "3.0", "nan".
/// For texts and files that Keras makes so.
std::string python_repr(double value);

}  // namespace tessera::detail
