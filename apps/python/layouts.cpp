#include "apps/python/layouts.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/mesh/layout_file.hpp>

#include "apps/python/arrays.hpp"

namespace tessera::python {

using namespace detail;

namespace {

/// Reads {"batch": 4, "model": 2}, [("batch", 4), ("model", 2)] or "batch=4,model=2".
MeshDims dims_of(nb::handle dims) {
  if (nb::isinstance<nb::str>(dims)) return parse_mesh_dims(nb::cast<std::string>(dims));
  const nb::object pairs = nb::isinstance<nb::dict>(dims) ? dims.attr("items")() : nb::borrow(dims);
  MeshDims read;
  try {
    for (const nb::handle pair : pairs) {
      read.push_back(nb::cast<std::pair<std::string, int64_t>>(pair));
    }
  } catch (const nb::cast_error&) {
    throw nb::type_error(
        "[dims] sizes by name. Received: another value. To fix: write {\"batch\": 4, \"model\": "
        "2}.");
  }
  return read;
}

std::optional<Device::Type> device_type_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  if (*name == "cpu") return Device::Type::cpu;
  if (*name == "cuda" || *name == "gpu") return Device::Type::cuda;
  throw ConfigError("device_type", "must be \"cpu\" or \"cuda\"", "\"" + *name + "\"",
                    "write one of them, or leave it out");
}

Mesh distributed_mesh(const MeshDims& dims, const DistributedOptions& options = {}) {
  const nb::gil_scoped_release released;
  return create_distributed_mesh(dims, options);
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

LayoutFile layout_file_of(nb::handle layouts) {
  if (nb::isinstance<nb::dict>(layouts)) {
    return layout_file_from_json(json_of(layouts, "layouts"), "layouts");
  }
  if (nb::isinstance<nb::str>(layouts) || nb::hasattr(layouts, "__fspath__")) {
    return read_layout_file(path_of(layouts));
  }
  throw nb::type_error(
      ("[layouts] a LayoutMap, the path of a layouts file, or its content as a dict. Received: " +
       type_name_of(layouts) + ".")
          .c_str());
}

LayoutSpec spec_of(nb::handle layout) {
  LayoutSpec spec;
  for (const nb::handle axis : layout) {
    if (axis.is_none()) {
      spec.emplace_back(nullptr);
    } else if (nb::isinstance<nb::str>(axis)) {
      spec.emplace_back(nb::cast<std::string>(axis));
    } else {
      spec.emplace_back(nb::cast<std::vector<std::string>>(axis));
    }
  }
  return spec;
}

}  // namespace

Json json_of(nb::handle value, const std::string& where) {
  const nb::object text = nb::module_::import_("tessera._configs").attr("to_json")(value);
  return parse_json(nb::cast<std::string>(text), where);
}

nb::object value_of(const Json& json) {
  return nb::module_::import_("tessera._configs").attr("to_value")(to_json_text(json, -1));
}

std::string path_of(nb::handle path) {
  return nb::cast<std::string>(nb::module_::import_("os").attr("fsdecode")(path));
}

LayoutMap layouts_of(nb::handle layouts, nb::handle mesh) {
  if (nb::isinstance<LayoutMap>(layouts)) return nb::cast<LayoutMap>(layouts);
  LayoutFile file;
  if (!layouts.is_none()) file = layout_file_of(layouts);
  if (nb::isinstance<Mesh>(mesh)) return make_layout_map(file, nb::cast<Mesh>(mesh));
  if (!mesh.is_none()) return make_layout_map(file, distributed_mesh(dims_of(mesh)));
  if (layouts.is_none()) return {};
  if (!file.mesh) {
    throw ConfigError("layouts", "layouts are those of a mesh", "layouts without \"mesh\"",
                      "add {\"mesh\": {\"batch\": 4}}, or pass mesh=create_mesh({\"batch\": 4})");
  }
  return make_layout_map(file, distributed_mesh(*file.mesh));
}

void bind_meshes(nb::module_& module) {
  nb::class_<Mesh>(module, "Mesh",
                   "Devices arranged on a grid with named dimensions; create_mesh() and "
                   "create_distributed_mesh() make it.")
      .def_prop_ro(
          "dims",
          [](const Mesh& mesh) {
            nb::dict dims;
            for (const auto& [name, size] : mesh.dims()) dims[name.c_str()] = size;
            return dims;
          },
          "Sizes by name, major first.")
      .def_prop_ro("size", &Mesh::size, "Number of devices.")
      .def_prop_ro(
          "local_devices",
          [](const Mesh& mesh) {
            std::vector<std::string> names;
            for (const Device& device : mesh.local_devices()) names.push_back(to_string(device));
            return names;
          },
          "Devices of this process.")
      .def("__eq__",
           [](const Mesh& mesh, nb::handle other) {
             return nb::isinstance<Mesh>(other) && mesh == nb::cast<Mesh>(other);
           })
      .def("__hash__", &Mesh::hash)
      .def("__repr__", [](const Mesh& mesh) { return "Mesh(" + mesh.describe() + ")"; });

  nb::class_<LayoutMap>(
      module, "LayoutMap",
      "Layouts of weights and values by path (keras.distribution.LayoutMap): "
      "layouts[\"hidden/kernel\"] = [None, \"model\"]. A path is matched in full by an RE2 "
      "expression; an axis is None, the name of a mesh dimension or a list of names.")
      .def(
          "__init__", [](LayoutMap* made, const Mesh& mesh) { new (made) LayoutMap(mesh); },
          nb::arg("mesh"))
      .def("__setitem__", [](LayoutMap& map, const std::string& match,
                             nb::handle layout) { map[match] = spec_of(layout); })
      .def(
          "set_data",
          [](LayoutMap& map, const std::string& name, nb::handle layout) {
            map.set_data(name, spec_of(layout));
          },
          nb::arg("name"), nb::arg("layout"),
          "Sets the layout of batches of \"x\", \"y\" or \"sample_weight\", or of an input or "
          "output by "
          "its name.")
      .def_prop_ro("mesh", &LayoutMap::mesh)
      .def(
          "to_dict", [](const LayoutMap& map) { return value_of(to_json(map)); },
          "Returns the content of a layouts file.")
      .def("__repr__", &LayoutMap::describe);

  module.def(
      "create_mesh",
      [](nb::handle dims, const std::optional<std::vector<std::string>>& devices) {
        std::vector<Device> parsed;
        for (const std::string& name : devices.value_or(std::vector<std::string>())) {
          parsed.push_back(device_from_string(name));
        }
        return create_mesh(dims_of(dims), parsed);
      },
      nb::arg("dims"), nb::arg("devices") = nb::none(),
      "Creates a mesh over devices of this process, such as \"cpu:0\" or \"cuda:0\" (default: as "
      "many "
      "virtual CPUs as it needs): create_mesh({\"batch\": 4, \"model\": 2}).");
  module.def(
      "create_distributed_mesh",
      [](nb::handle dims, std::optional<int64_t> devices,
         const std::optional<std::string>& device_type, int64_t virtual_devices,
         double connect_timeout, double timeout, bool always_check, bool shared_memory) {
        return distributed_mesh(dims_of(dims), {.devices = devices,
                                                .device_type = device_type_of(device_type),
                                                .virtual_devices = virtual_devices,
                                                .connect_timeout = milliseconds(connect_timeout),
                                                .timeout = milliseconds(timeout),
                                                .always_check = always_check,
                                                .shared_memory = shared_memory});
      },
      nb::arg("dims"), nb::kw_only(), nb::arg("devices") = nb::none(),
      nb::arg("device_type") = nb::none(), nb::arg("virtual_devices") = 1,
      nb::arg("connect_timeout") = 300.0, nb::arg("timeout") = 120.0,
      nb::arg("always_check") = false, nb::arg("shared_memory") = true,
      "Creates a mesh over the devices of all processes that tessera-launch, mpirun, Slurm or "
      "Kubernetes started; of this process alone, if there is no other. Timeouts are seconds. "
      "Collective.");
  module.def(
      "process_count", [] { return process_count(); },
      "Returns the number of processes that create_distributed_mesh() would span.");
  module.def("is_first_process", &is_first_process, nb::arg("mesh"),
             "Whether this process is the first one of the mesh, which prints and writes for all.");
  module.def("barrier", &barrier, nb::arg("mesh"), nb::arg("name") = "barrier",
             nb::call_guard<nb::gil_scoped_release>(),
             "Returns once every process of the mesh has called it.");
}

}  // namespace tessera::python
