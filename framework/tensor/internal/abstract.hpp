#pragma once

#include <cstdint>
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

/// A change of memory by a planned reduction that runs beside the step.
struct PlannedReduction {
  enum class Change : uint8_t {
    held,      ///< holds as much as a tensor of the sharding
    released,  ///< no longer holds it
    replaced,  ///< the gradient has the sharding from here on, in new memory
  };
  Change change;
  ShardingPtr sharding;
  uint64_t gradient = 0;  ///< id of the gradient that is reduced
  /// If not empty, the memory is only sent: it is also released by the end of any later collective
  /// over these mesh dimensions, since the collectives of a group of processes end in order.
  std::string sent_over = {};
};

/// The changes by one reduction, in order.
struct PlannedReductions {
  std::vector<PlannedReduction> at_start, at_end;
};

/// The tensors that a planned step keeps in memory.
struct PlannedTensors {
  bool between_processes = false;            ///< whether several processes run the step
  std::vector<PlannedTensor> saved;          ///< saved for the backward pass, Variables excluded
  std::vector<PlannedCopy> copies;           ///< saved for it too, made of Variables
  std::vector<PlannedTensor> gradients;      ///< in the layouts that the optimizer receives
  std::vector<PlannedReduction> reductions;  ///< since a listener took them, in order
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
/// Returns the layout over the same dimensions of the planning mesh, or of the same view of it; a
/// replicated one if that lacks a dimension of the layout's mesh. Outside an AbstractScope: the
/// layout itself.
Layout abstract_layout(const Layout& layout);
/// Returns that layout for a value whose layout is `like`: over dimensions that the mesh of
/// `layout` lacks, each axis stays sharded as it is.
Layout abstract_layout(const Layout& layout, const Layout& like);

}  // namespace tessera::detail
