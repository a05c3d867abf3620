#pragma once

#include <nanobind/nanobind.h>

#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/model/model.hpp>

#include "apps/python/data.hpp"

namespace tessera::python {

/// A model, and the layouts that compile() uses unless it is given others.
struct PythonModel {
  ModelHandle handle;
  LayoutMap layouts = {};

  DataNames names() const { return DataNames(handle.model()); }
};

/// Binds Model, what its methods return, and the functions that make models.
void bind_models(nanobind::module_& module);

}  // namespace tessera::python
