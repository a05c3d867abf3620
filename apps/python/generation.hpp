#pragma once

#include <nanobind/nanobind.h>

namespace tessera::python {

/// Binds Model.generate and what it returns. To be called after bind_models().
void bind_generation(nanobind::module_& module);

}  // namespace tessera::python
