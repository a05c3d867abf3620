#pragma once

#include <string>
#include <vector>

#include <tessera/framework/mesh/layout_file.hpp>

namespace tessera::imdb {

/// A sharding of the model and its batches: one of the DTensor tutorial's three, or the user's.
struct Scheme {
  std::string name;
  LayoutFile layouts;  ///< layouts, with a mesh
};

/// Returns "data", "model" and "spatial", in the order in which the tutorial trains them, with the
/// layouts of apps/imdb/layouts.
const std::vector<Scheme>& schemes();

}  // namespace tessera::imdb
