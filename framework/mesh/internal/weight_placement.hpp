#pragma once

#include <memory>
#include <string>

#include <tessera/framework/mesh/layout_map.hpp>

namespace tessera::detail {

/// Says where weights rest that are placed on a mesh: the seam at which a strategy keeps them on
/// other devices than those which compute.
class WeightPlacement {
 public:
  virtual ~WeightPlacement() = default;
  /// Where a weight rests whose layouts put it on the mesh.
  virtual Placement rest(const Placement& wanted) const = 0;
  /// "weights rest on mesh storage=1", for LayoutMap::describe().
  virtual std::string describe() const = 0;
};

/// The mesh, with weights that rest where `placement` says: another mesh than the one without.
Mesh with_weight_placement(const Mesh& mesh, std::shared_ptr<const WeightPlacement> placement);

/// What says where weights placed on a mesh rest; null: on the mesh itself.
const WeightPlacement* weight_placement_of(const Mesh& mesh);

/// Where a weight rests: what the WeightPlacement of its mesh says, else where it is wanted.
Placement resting(const Placement& wanted);

}  // namespace tessera::detail
