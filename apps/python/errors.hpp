#pragma once

namespace tessera::python {

/// Makes Tessera's errors the classes of the same names in tessera.errors, and libtorch's one line.
void translate_errors();

}  // namespace tessera::python
