#pragma once

#include <nanobind/nanobind.h>

namespace tessera::python {

/// Binds Model, what its methods return, and the functions that make models.
void bind_models(nanobind::module_& module);

}  // namespace tessera::python
