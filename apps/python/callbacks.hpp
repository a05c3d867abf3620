#pragma once

#include <vector>

#include <nanobind/nanobind.h>

#include <tessera/framework/training/callbacks/callback.hpp>

namespace tessera::python {

namespace nb = nanobind;

/// Returns named values as a dict.
nb::dict dict_of(const Logs& logs);

/// Returns callbacks that call Python's: those of a list, a single one, or none for None. `model`
/// is what their set_model() gets. They must be destroyed with the GIL held. Throws TypeError for
/// an object without hooks.
std::vector<CallbackHandle> callbacks_of(nb::handle callbacks, nb::handle model);

}  // namespace tessera::python
