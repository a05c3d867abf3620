#pragma once

#include <memory>
#include <string>

#include <tessera/framework/mesh/layout_map.hpp>

namespace tessera::detail {

/// Decides where the weights of a mesh are stored. A strategy implements it to keep them on other
/// devices than those that compute.
class WeightPlacement {
 public:
  virtual ~WeightPlacement() = default;
  /// Returns the layouts in which a weight with these layouts on the mesh is stored.
  virtual Placement stored_placement(const Placement& requested) const = 0;
  /// "weights rest on mesh storage=1", for LayoutMap::describe().
  virtual std::string describe() const = 0;
};

/// Returns the mesh with its weights stored as `placement` decides. It is not equal to `mesh`.
Mesh with_weight_placement(const Mesh& mesh, std::shared_ptr<const WeightPlacement> placement);

/// Returns the placement of the mesh's weights; null if they are stored on the mesh itself.
const WeightPlacement* weight_placement_of(const Mesh& mesh);

/// Returns the layouts in which a weight is stored: those of its mesh's WeightPlacement, or the
/// requested ones if the mesh has none.
Placement stored_placement(const Placement& requested);

}  // namespace tessera::detail
