#pragma once

#include <nanobind/nanobind.h>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::python {

namespace nb = nanobind;

/// Returns a value of Python as JSON, objects of Keras by their configurations. `where` names it in
/// errors.
Json json_of(nb::handle value, const std::string& where);
/// Returns JSON as a value of Python.
nb::object value_of(const Json& json);

/// Returns a path, which may be an os.PathLike.
std::string path_of(nb::handle path);

/// Returns the layout map of the arguments `layouts` (a LayoutMap, the path of a layouts file, its
/// content as a dict, or None) and `mesh` (a Mesh, its dimensions, or None); undefined if both are
/// None. Dimensions, of which the layouts' own are the default, make a mesh over all processes of
/// the run.
LayoutMap layouts_of(nb::handle layouts, nb::handle mesh);

/// Binds Mesh, LayoutMap and the functions that make and use meshes.
void bind_meshes(nb::module_& module);

}  // namespace tessera::python
