#pragma once

#include <string>
#include <vector>

#include <tessera/framework/mesh/layout_file.hpp>

namespace tessera::imdb {

/// A way to cut the model and its batches up: one of the DTensor tutorial's three, or the user's.
struct Scheme {
  std::string name;
  LayoutFile layouts;  ///< with a mesh
};

/// "data", "model" and "spatial", in the order in which the tutorial trains them. Their layouts are
/// those of apps/imdb/layouts.
const std::vector<Scheme>& schemes();

}  // namespace tessera::imdb
