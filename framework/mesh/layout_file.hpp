#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/mesh/layout_map.hpp>

namespace tessera {

/// The content of a layouts file; every key may be absent:
///
///     {"mesh": {"batch": 4, "model": 2},
///      "data": {"x": ["batch", null], "y": ["batch"]},
///      "layouts": [{"match": "hidden/kernel", "layout": [null, "model"]}],
///      "fully_shard": "batch",
///      "memory": {"slots": "disk:/tmp"},
///      "remat": [{"match": "block_\\d+", "save": "matmuls"}],
///      "world_size_invariant": true,
///      "pipeline": {"stages": "stage", "microbatches": 8, "schedule": "1f1b"},
///      "on_multiple": "error"}
///
/// Keys of "data" are "x", "y" and "sample_weight", or names of the model's inputs and outputs. A
/// rule matches weights or, if it matches none, values: "hidden/output", "attention/input"
/// (LayoutRule). An axis is null or "unsharded", the name of a mesh dimension, or a list of names.
/// A rule may add "use", "slots", "reshard" ("never" or "after_forward"), "reduce" ("ready" or
/// "end") and "optional" (LayoutRule). "fully_shard" names one mesh dimension or several, or is an
/// object with "over", "reshard" (default: "after_forward") and "reduce" (FullyShard). "memory"
/// says where slots rest (MemoryOptions). "pipeline" may also have "chunks" and "split", which is
/// "auto" (default), "rules" or a list of layers (PipelineParallelOptions); with it, a rule of
/// "layouts" may have "stage", with or without "layout" (StageRule). A rule of "remat" says what is
/// saved of layers that are rematerialized (RematRule): "save" is "nothing" (default), "matmuls" or
/// a list of names of operations; "collectives" may be true. "world_size_invariant" is that of
/// CompileOptions.
struct LayoutFile {
  std::optional<MeshDims> mesh = std::nullopt;
  std::map<std::string, LayoutSpec> data = {};
  std::vector<LayoutRule> rules = {};
  std::optional<FullyShard> fully_shard = std::nullopt;
  MemoryOptions memory = {};
  std::optional<PipelineParallelOptions> pipeline = std::nullopt;
  std::vector<RematRule> remat = {};
  bool world_size_invariant = false;
  OnMultiple on_multiple = OnMultiple::error;
  bool operator==(const LayoutFile&) const = default;
};

/// Reads a layouts file. Throws FileError if it cannot be read, and ConfigError with the position
/// if it is not JSON of that form.
LayoutFile read_layout_file(const std::string& path);

namespace detail {

/// Parses the content of a layouts file; errors call it `source`.
LayoutFile layout_file_from_json(const Json& json, const std::string& source);

}  // namespace detail

/// Builds the layout map of a file over `mesh`. Throws LayoutError like LayoutMap::add and
/// LayoutMap::set_data.
LayoutMap make_layout_map(const LayoutFile& file, const Mesh& mesh);

/// Returns a layout map and its mesh's dimensions as the JSON of a layouts file.
Json to_json(const LayoutMap& map);

/// Parses the output of to_json() into a layout map over `mesh`.
LayoutMap layout_map_from_json(const Json& json, const Mesh& mesh,
                               const std::string& source = "layouts");

}  // namespace tessera
