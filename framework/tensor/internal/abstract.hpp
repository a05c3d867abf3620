#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/mesh/layout.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

/// A tensor that a planned step keeps in memory, and the layer or weight it belongs to.
struct PlannedTensor {
  std::string path;
  ShardingPtr sharding;
};

/// A planned tensor that is made of a Variable alone, for operations to use.
struct PlannedCopy {
  PlannedTensor tensor;
  bool gathered = false;  ///< whether it has fewer shards than the Variable; else a cast of it
};

/// The tensors that a planned step keeps in memory.
struct PlannedTensors {
  std::vector<PlannedTensor> saved;      ///< saved for the backward pass, Variables excluded
  std::vector<PlannedCopy> copies;       ///< saved for it too, made of Variables
  std::vector<PlannedTensor> gradients;  ///< in the layouts that the optimizer receives
};

/// While alive, this thread plans and computes nothing: values are placed on a planning mesh, which
/// has the dimensions of `mesh` but no device in this process. Operations infer shapes, choose
/// layouts and log what they would communicate, but have no blocks. Variables return such values in
/// their own layouts and ignore assignments. Layouts on `mesh` are taken as layouts on the planning
/// mesh. `planned` receives the tensors that the step would keep.
class AbstractScope {
 public:
  explicit AbstractScope(const Mesh& mesh, PlannedTensors* planned = nullptr);

 private:
  ScopedValue<Mesh> mesh_;
  ScopedValue<PlannedTensors*> planned_;
};

/// Whether an AbstractScope is alive in this thread.
bool is_abstract();
/// Returns the planning mesh of this thread; undefined outside an AbstractScope.
const Mesh& abstract_mesh();
/// Returns the notes of the innermost AbstractScope; null if it has none.
PlannedTensors* planned_tensors();
/// Returns the layout with the same entries on the planning mesh, or a replicated one if the meshes
/// have different dimensions. Outside an AbstractScope: the layout itself.
Layout abstract_layout(const Layout& layout);

}  // namespace tessera::detail
