#pragma once

#include <string>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/mesh/layout.hpp>
#include <tessera/framework/tensor/internal/sharding.hpp>

namespace tessera::detail {

/// A tensor that a planned step holds, and the layer or weight it is for.
struct PlannedTensor {
  std::string place;
  ShardingPtr form;
};

/// What a planned step tells beside the comm log.
struct AbstractNotes {
  std::vector<PlannedTensor> kept;       ///< what the backward pass needs, without Variables
  std::vector<PlannedTensor> gradients;  ///< in the layouts in which the optimizer gets them
};

/// While alive, this thread plans and computes nothing: values lie on a mesh with the dimensions of
/// `mesh` of which no device is here, so that operations infer shapes, choose layouts and log what
/// they would communicate, but have no blocks. Variables give such values in their own layouts and
/// ignore assignments. Layouts on `mesh` mean the planning mesh. What is to be held is noted.
class AbstractScope {
 public:
  explicit AbstractScope(const Mesh& mesh, AbstractNotes* notes = nullptr);

 private:
  ScopedValue<Mesh> mesh_;
  ScopedValue<AbstractNotes*> notes_;
};

/// Whether an AbstractScope is alive in this thread.
bool is_abstract();
/// The mesh that this thread plans on; undefined outside an AbstractScope.
const Mesh& abstract_mesh();
/// Notes of the innermost AbstractScope, null for none.
AbstractNotes* abstract_notes();
/// The layout with the same entries on the planning mesh; replicated if that lacks a dimension.
/// Outside an AbstractScope: the layout itself.
Layout abstract_layout(const Layout& layout);

}  // namespace tessera::detail
