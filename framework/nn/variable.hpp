#pragma once

#include <optional>
#include <string>

#include <tessera/framework/base/internal/handle_state.hpp>
#include <tessera/framework/mesh/layout_map.hpp>
#include <tessera/framework/nn/initializers/constraint.hpp>
#include <tessera/framework/nn/initializers/initializer.hpp>
#include <tessera/framework/nn/initializers/regularizer.hpp>

namespace tessera {

/// What a weight is before it has values.
struct VariableSpec {
  std::string path;  ///< "hidden/kernel"
  Shape shape;
  at::ScalarType dtype = at::kFloat;
  InitializerHandle initializer;
  /// The seed of all weights of the model; the weight's own stream is this and its path.
  Seed seed = {};
  bool trainable = true;
  RegularizerHandle regularizer = {};  ///< adds to the model's loss
  ConstraintHandle constraint = {};    ///< kept by the optimizer
};

/// A value that training changes (tf.experimental.dtensor.DVariable). A handle: copies are the same
/// variable. Values are drawn when first read, straight into their shards.
class Variable {
 public:
  Variable() = default;
  /// A variable not drawn yet, replicated over the default mesh until placed: it rests where the
  /// mesh's WeightPlacement says.
  explicit Variable(VariableSpec spec);
  /// A variable of a value, whose layout it takes and whose memory it copies unless nobody else
  /// holds it; it rests where the mesh's WeightPlacement says.
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

  /// Where the value goes, and rests unless the mesh's WeightPlacement says otherwise; relayouts
  /// one that exists. Collective if it does.
  void place(const Placement& wanted);

  /// The value where it rests; drawn now if it was not. Do not keep it over an assignment you want
  /// to happen in place. Under an AbstractScope: without blocks, on the scope's mesh.
  const DTensor& value() const;
  /// The value for an operation: in the placement's `use` layout and of the given dtype.
  DTensor read(std::optional<at::ScalarType> dtype = std::nullopt) const;

  /// New values, brought to this variable's layout and dtype. In place if nobody else holds the
  /// memory, else in memory of its own. Throws ShapeError.
  void assign(const DTensor& value);
  void assign_add(const DTensor& value);
  void assign_sub(const DTensor& value);

  /// This process's blocks, contiguous, to be changed in place: fresh memory if anybody else holds
  /// the present. Counts as an assignment.
  const detail::Blocks& writable();

  /// Whether both handles are of one variable, not of an equal one.
  bool is(const Variable& other) const { return state_ == other.state_; }
  /// Identity on a tape.
  uint64_t id() const { return state().tag->id; }

 private:
  struct State {
    VariableSpec spec;
    Placement placement;
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
