#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tessera/framework/base/internal/handle_state.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/initializers/constraint.hpp>
#include <tessera/framework/nn/initializers/initializer.hpp>
#include <tessera/framework/nn/initializers/regularizer.hpp>
#include <tessera/framework/tensor/memory_use.hpp>

namespace tessera {

class Variable;
namespace detail {
class StoredSlots;
/// Drops the value: until one is assigned, reading draws the initial value.
void drop_value(Variable& variable);
}  // namespace detail

/// The specification of a weight whose values are drawn later.
struct VariableSpec {
  std::string path;  ///< "hidden/kernel"
  Shape shape;
  at::ScalarType dtype = at::kFloat;
  InitializerHandle initializer;
  /// Seed shared by all weights of the model; each weight folds in its path.
  Seed seed = {};
  bool trainable = true;
  RegularizerHandle regularizer = {};  ///< penalty added to the model's loss
  ConstraintHandle constraint = {};    ///< applied by the optimizer after each update
  /// The order of axes in a block's memory: see WeightOptions.
  std::vector<int64_t> memory_order = {};
  MemoryUse memory_use = MemoryUse::weights;  ///< what DeviceMemory counts its memory for
};

/// A mutable DTensor, such as a weight (tf.experimental.dtensor.DVariable). A handle: copies refer
/// to the same variable. Initial values are drawn when first read, each shard on its device.
class Variable {
 public:
  Variable() = default;
  /// Creates a variable whose values are drawn later. Until placed, it is replicated over the
  /// default mesh. The mesh's WeightPlacement decides where it is stored.
  explicit Variable(VariableSpec spec);
  /// Creates a variable with the value and layout of `value`, whose memory is copied unless nothing
  /// else holds it. The mesh's WeightPlacement decides where it is stored.
  Variable(std::string path, DTensor value, bool trainable = true);

  bool defined() const { return state_ != nullptr; }
  const std::string& path() const { return state().spec.path; }
  void set_path(const std::string& path) { state().spec.path = state().tag->path = path; }
  const Shape& shape() const { return state().spec.shape; }
  at::ScalarType dtype() const { return state().spec.dtype; }
  bool trainable() const { return state().tag->trainable; }
  void set_trainable(bool trainable) { state().tag->trainable = trainable; }
  const Layout& layout() const { return state().placement.layout; }
  const Placement& placement() const { return state().placement; }
  const VariableSpec& spec() const { return state().spec; }
  bool has_value() const { return state().value.defined(); }
  /// Whether place() has run.
  bool placed() const { return state().placed; }

  /// Sets the placement, as modified by the mesh's WeightPlacement. Reshards the value if it has
  /// been drawn, which is collective.
  void place(const Placement& placement);

  /// Returns the value as stored; draws it on the first call. Holding the result across an
  /// assignment makes the assignment copy instead of writing in place. Under an AbstractScope: a
  /// DTensor without blocks, on the scope's mesh.
  const DTensor& value() const;
  /// Returns the value for use in an operation: in the placement's `use` layout and in `dtype`
  /// (default: the variable's own).
  DTensor read(std::optional<at::ScalarType> dtype = std::nullopt) const;

  /// Assigns new values, converted to this variable's layout and dtype. Writes in place if nothing
  /// else holds the memory, else into new memory. Throws ShapeError.
  void assign(const DTensor& value);
  /// assign() for a layer's call(). Unlike assign(), it may happen between a forward pass and its
  /// gradient(), which is that of the values that the pass has read.
  void assign_in_call(const DTensor& value);
  void assign_add(const DTensor& value);
  void assign_sub(const DTensor& value);

  /// Returns this process's blocks, dense in the variable's memory order, to be written in place;
  /// copies them to new memory first if anything else holds the present memory. Counts as an
  /// assignment.
  const detail::Blocks& writable();

  /// Whether both handles refer to the same variable.
  bool is(const Variable& other) const { return state_ == other.state_; }
  /// The variable's identity on a tape.
  uint64_t id() const { return state().tag->id; }

 private:
  friend class detail::StoredSlots;
  friend void detail::drop_value(Variable& variable);
  struct State {
    VariableSpec spec;
    Placement placement;
    bool placed = false;
    DTensor value;
    std::shared_ptr<detail::VariableTag> tag = std::make_shared<detail::VariableTag>();
    DTensor planned;
  };
  void set_value(DTensor value) const;
  void take(const DTensor& value);
  const DTensor& planned_value() const;

  State& state() const {
    return detail::handle_state(state_, "Variable",
                                "get it from add_weight(), weights() or a value");
  }

  std::shared_ptr<State> state_;
};

}  // namespace tessera
