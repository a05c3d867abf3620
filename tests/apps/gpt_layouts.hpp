#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace tessera::gpt {

inline std::filesystem::path layouts_folder() {
  return std::filesystem::path(TESSERA_TEST_DIR).parent_path() / "apps/gpt/layouts";
}

/// Returns the names of gpt's layouts files: "data", "fsdp", …
inline std::vector<std::string> layouts_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(layouts_folder())) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns the number of experts of the model that a layouts file is for.
inline int64_t experts_of(const std::string& name) { return name.starts_with("experts") ? 8 : 0; }

inline LayoutFile layouts_file(const std::string& name) {
  LayoutFile file = read_layout_file((layouts_folder() / (name + ".json")).string());
  REQUIRE(file.mesh);
  return file;
}

/// Whether a layouts file divides the model into stages.
inline bool has_stages(const std::string& name) { return layouts_file(name).pipeline.has_value(); }

/// Loads a layouts file with other mesh dimensions.
inline LayoutMap layouts_of(const std::string& name, const MeshDims& dims) {
  const LayoutFile file = layouts_file(name);
  REQUIRE(file.mesh->size() == dims.size());
  for (size_t d = 0; d < dims.size(); ++d) REQUIRE((*file.mesh)[d].first == dims[d].first);
  return make_layout_map(file, create_mesh(dims));
}

/// Loads a layouts file with its own mesh.
inline LayoutMap layouts_of(const std::string& name) {
  return layouts_of(name, *layouts_file(name).mesh);
}

}  // namespace tessera::gpt
