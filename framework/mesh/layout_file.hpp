#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/mesh/layout_map.hpp>

namespace tessera {

/// What a layouts file says; every part may be absent:
///
///     {"mesh": {"batch": 4, "model": 2},
///      "data": {"x": ["batch", null], "y": ["batch"]},
///      "layouts": [{"match": "hidden/kernel", "layout": [null, "model"]}],
///      "on_multiple": "error"}
///
/// "data" are "x", "y" and "sample_weight", or an input or output of the model by its name. A rule
/// matches weights or, if it matches none, values: "hidden/output", "attention/input" (LayoutRule).
/// An axis is null or "unsharded", the name of a mesh dimension, or a list of names. A rule may add
/// "use", "slots" and "optional" (LayoutRule).
struct LayoutFile {
  std::optional<MeshDims> mesh = std::nullopt;
  std::map<std::string, LayoutSpec> data = {};
  std::vector<LayoutRule> rules = {};
  OnMultiple on_multiple = OnMultiple::error;
  bool operator==(const LayoutFile&) const = default;
};

/// The content of a layouts file. Throws FileError if it cannot be read, ConfigError with the place
/// if it is not JSON of that form.
LayoutFile read_layout_file(const std::string& path);

namespace detail {

/// The content of a layouts file from a JSON value; `source` names it in errors.
LayoutFile layout_file_from_json(const Json& json, const std::string& source);

}  // namespace detail

/// The layout map that a file describes, over `mesh`. Throws LayoutError as LayoutMap::add and
/// LayoutMap::set_data do.
LayoutMap make_layout_map(const LayoutFile& file, const Mesh& mesh);

/// A layout map and its mesh's dimensions in the form of a layouts file.
Json to_json(const LayoutMap& map);

/// The layout map that to_json() wrote, over `mesh`.
LayoutMap layout_map_from_json(const Json& json, const Mesh& mesh,
                               const std::string& source = "layouts");

}  // namespace tessera
