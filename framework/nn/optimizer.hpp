#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/variable.hpp>

namespace tessera {

/// What the update of one block works on: a piece of a variable; tensors of one shape, contiguous.
struct UpdateArgs {
  at::Tensor weight;              ///< changed in place
  at::Tensor gradient;            ///< of the weight's dtype; only read
  std::vector<at::Tensor> slots;  ///< changed in place, in slot_names() order
  double learning_rate = 0;
  int64_t step = 1;  ///< counts from 1
};

/// Base of all optimizers (keras.optimizers.Optimizer). Gradients arrive as the tape leaves them,
/// often pending; each is brought to its variable's layout (this is the data-parallel reduction),
/// then every block is updated where it lies. Slots follow their variable's layout, or the layout
/// map's `slots`.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Keras' class name, "Adam".
  virtual std::string class_name() const = 0;
  virtual Json config() const = 0;

  double learning_rate() const { return learning_rate_; }
  /// Throws ConfigError for a negative rate.
  void set_learning_rate(double rate);
  /// Steps taken.
  int64_t iterations() const { return iterations_; }
  void set_iterations(int64_t steps) { iterations_ = steps; }

  /// Makes the slots of these variables, of zeros, in the variables' layouts or where their
  /// placement says; those that exist keep their values and move.
  void build(const std::vector<Variable>& variables);
  /// One step. Variables without a gradient (undefined) are left alone. Collective: reduces the
  /// gradients. Throws StateError if no gradient is defined, ConfigError unless there is one for
  /// each variable, ShapeError unless it has its shape.
  void apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  /// The slots of one variable, in slot_names() order; made by build() or the first step. Their
  /// paths are "adam/hidden/kernel/momentum". Throws StateError for a variable not built.
  const std::vector<Variable>& slots(const Variable& variable) const;
  /// All slots, in the variables' order.
  std::vector<Variable> variables() const;

 protected:
  /// Throws ConfigError for a negative rate or decay. `weight_decay` is Keras': decoupled, before
  /// each update w -= w · rate · decay.
  explicit Optimizer(double learning_rate, double weight_decay = 0);
  /// Keras' names of every variable's slots: {"momentum", "velocity"}.
  virtual std::vector<std::string> slot_names() const = 0;
  /// The update of one block.
  virtual void update(const UpdateArgs& args) const = 0;
  /// The updates of all blocks of a step: update() on each, small ones in parallel.
  virtual void update_all(const std::vector<UpdateArgs>& blocks) const;
  double weight_decay() const { return weight_decay_; }

 private:
  struct Target;
  void build_slots(const Variable& variable);
  void check_step(const std::vector<DTensor>& gradients,
                  const std::vector<Variable>& variables) const;
  Target target_of(Variable& variable, const DTensor& gradient);

  double learning_rate_ = 0;
  double weight_decay_ = 0;
  int64_t iterations_ = 0;
  std::map<uint64_t, std::vector<Variable>> slots_;
  std::vector<uint64_t> order_;
};

class OptimizerRef;
/// The optimizer of a Keras name, "adam", with its defaults. Throws ConfigError naming the nearest
/// one.
OptimizerRef make_optimizer(const std::string& name);

/// A handle to an optimizer: copies share its state.
class OptimizerRef {
 public:
  OptimizerRef() = default;
  OptimizerRef(std::shared_ptr<Optimizer> made)
      : made_(std::move(made)) {}  // NOLINT: reads as data
  /// By Keras' name, "adam", with its defaults. Throws ConfigError naming the nearest one.
  OptimizerRef(const char* name);  // NOLINT
  Optimizer& operator*() const { return *made_; }
  Optimizer* operator->() const { return made_.get(); }
  explicit operator bool() const { return made_ != nullptr; }

 private:
  std::shared_ptr<Optimizer> made_;
};

}  // namespace tessera
