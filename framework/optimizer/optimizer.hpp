#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/config/registry.hpp>
#include <tessera/framework/nn/handle.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/optimizer/learning_rate.hpp>
#include <tessera/framework/optimizer/optimizer_options.hpp>

namespace tessera {

class Layer;
class Optimizer;
class OptimizerHandle;
namespace detail {
class GradientReducer;
class AccumulatedGradients;
class GradientAccumulation;
class MovingAverages;
class PartUpdater;
class UpdateStrategy;
void check_optimizer(const Layer& model, Optimizer& optimizer);
/// 0-d tensors, one on each of some devices.
using ScalarOnDevices = std::unordered_map<c10::Device, at::Tensor>;
}  // namespace detail

/// Arguments of the update of one block of a variable: contiguous tensors of the weight's shape,
/// slots less their SlotSpec::without_axis.
struct UpdateArgs {
  at::Tensor weight;              ///< changed in place
  at::Tensor gradient;            ///< has the weight's dtype; only read
  std::vector<at::Tensor> slots;  ///< changed in place, in slot_specs() order
  double learning_rate = 0;       ///< rate of the step
  int64_t step = 1;               ///< number of the update, from 1
};

/// Arguments of the update of a variable. Weight, gradient and slots of the same shape have the
/// same blocks.
struct VariableUpdate {
  DTensor weight;               ///< its blocks are changed in place
  DTensor gradient;             ///< has the weight's dtype, not a partial sum; only read
  std::vector<Variable> slots;  ///< changed by assign() or in place, in slot_specs() order
  double learning_rate = 0;     ///< rate of the step
  int64_t step = 1;             ///< number of the update, from 1
  /// Factor by which weight decay multiplies the rows that a row-sparse gradient has.
  double row_decay = 1;
};

/// A tensor that an optimizer keeps for a variable.
struct SlotSpec {
  std::string name;                 ///< Keras' name, "momentum"
  double initial_value = 0;         ///< initial value of every element
  bool starts_as_variable = false;  ///< whether it starts as a copy of the variable instead
  /// Axis of the variable over which the slot is reduced, so that the slot lacks it.
  std::optional<int64_t> without_axis = std::nullopt;
};

/// The variables that are excluded from weight decay.
struct WeightDecayExclusions {
  std::vector<Variable> var_list = {};  ///< the variables themselves
  /// RE2 expressions; a partial match of a variable's path ("block/dense/bias") or of the path's
  /// last name ("^bias") excludes the variable.
  std::vector<std::string> var_names = {};
};

/// Base of all optimizers (keras.optimizers.Optimizer). Gradients arrive as the tape produces them,
/// often as partial sums. Each is resharded to the layout in which its variable is updated, its own
/// or its placement's `slots` (this is the data-parallel reduction); then every block is updated on
/// its device. Slots, gradient accumulators and moving averages have that layout too.
///
/// A step, in Keras' order: divide gradients by loss_scale_factor and accumulate them; after
/// gradient_accumulation_steps, clip; decay and update the weights; update moving averages; apply
/// constraints. Steps that only accumulate change neither weights nor averages, and schedules count
/// updates; in Keras, averages, constraints and schedules take part in every step. Gradients that
/// need an all-reduce are accumulated as partial sums, so that an update reduces them once.
///
/// Gradients in float16 or bfloat16 (GradientOptions::narrow) are reduced, accumulated in the
/// variable's dtype, and widened for the update a few at a time.
class Optimizer : public std::enable_shared_from_this<Optimizer> {
 public:
  virtual ~Optimizer() = default;
  /// Keras' class name, "Adam".
  const std::string& class_name() const { return class_name_; }
  /// Returns the options that every optimizer has, by Keras' keys; a class adds its own.
  virtual Json config() const;
  /// The name option (default: the class name in snake_case).
  const std::string& name() const { return options_.name; }

  /// Returns the optimizers that this one wraps, which own steps, slots and moving averages; none
  /// for an ordinary optimizer.
  virtual std::vector<OptimizerHandle> inner() const;

  /// Returns the rate of the next update.
  virtual double learning_rate() const { return learning_rate_.at(iterations()); }
  /// Replaces the rate. Throws StateError if a number would replace a schedule.
  virtual void set_learning_rate(const LearningRate& rate);
  /// Whether the rate cannot be replaced by a number with set_learning_rate().
  virtual bool has_schedule() const { return learning_rate_.is_schedule(); }
  /// Returns the number of updates, on which schedules depend: steps() /
  /// gradient_accumulation_steps.
  virtual int64_t iterations() const;
  /// The number of calls of apply() (Keras' variable "iteration").
  int64_t steps() const { return steps_; }
  /// Sets the number of calls of apply(), to resume training.
  void set_steps(int64_t steps) { steps_ = steps; }

  /// Whether updates use row-sparse gradients (GradientOptions::row_sparse) without making them
  /// dense.
  virtual bool takes_rows() const;

  /// Returns the loss times loss_scale_factor: differentiate this.
  virtual DTensor scale_loss(const DTensor& loss) const;
  /// Whether scale_loss() changes the loss, so that gradients may overflow.
  virtual bool scales_loss() const { return options_.loss_scale_factor.has_value(); }
  /// Sets the variables that are excluded from weight decay, also of inner optimizers; replaces
  /// earlier exclusions. A name that matches no weight of the model gives a warning. Files of
  /// models keep the exclusions, which Keras ignores. Throws StateError after build(), ConfigError
  /// for an invalid expression.
  void exclude_from_weight_decay(const WeightDecayExclusions& exclusions);

  /// Creates the slots of these variables, in the variables' layouts or their placements' `slots`.
  /// Existing slots keep their values and are resharded.
  virtual void build(const std::vector<Variable>& variables);
  /// Whether build() has run for any variable.
  bool built() const { return !order_.empty(); }
  /// Runs one step. `gradients` has one entry per variable; variables whose entry is undefined are
  /// skipped. Collective: reduces the gradients and, for clipping, their norms. Throws StateError
  /// if no gradient is defined, ConfigError for another number of gradients, ShapeError unless each
  /// defined one has its variable's shape.
  void apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  /// apply() by Keras' name, and of pairs (keras.Optimizer.apply_gradients):
  ///
  ///     const std::vector<Variable> weights = model->trainable_weights();
  ///     optimizer->apply_gradients(tape.gradient(loss, weights), weights);
  void apply_gradients(const std::vector<DTensor>& gradients,
                       const std::vector<Variable>& variables) {
    apply(gradients, variables);
  }
  void apply_gradients(const std::vector<std::pair<DTensor, Variable>>& gradients_and_variables);
  /// Returns a callback for GradientOptions::on_ready when computing the gradients of scale_loss()
  /// with respect to these variables. It reduces gradients as soon as they are ready: a device
  /// holds its shard of them and the whole of few. Between processes the reductions overlap with
  /// the backward pass, and apply() waits for them; without the callback, apply() starts them.
  std::function<void(size_t, const DTensor&)> reduce_when_ready(
      const std::vector<Variable>& variables);
  /// The reducer of a step's gradients. Call its reset() if a step ends without apply() after
  /// reduce_when_ready().
  detail::GradientReducer& reducer() { return *reducer_; }
  /// Delegates the updates of apply() to `strategy`; apply() then changes neither weights nor slots
  /// itself. Null: no delegation. Throws ConfigError for an optimizer that has inner ones.
  void set_update_strategy(std::shared_ptr<detail::UpdateStrategy> strategy);

  /// With use_ema, overwrites the variables with their moving averages, if there was an update.
  /// Throws StateError for a variable that was not built.
  void finalize_variable_values(const std::vector<Variable>& variables);

  /// Returns the state that a checkpoint stores besides steps, rate and variables; null: none.
  virtual Json state() const { return nullptr; }
  /// Restores the result of state(). Overrides throw ConfigError for anything else.
  virtual void restore(const Json& /*state*/) {}

  /// Returns the optimizer's variables for one model variable, created by build() or the first
  /// step: slots in slot_specs() order, then "average" (use_ema), then "gradient_accumulator".
  /// Their paths are like "adam/hidden/kernel/momentum". Throws StateError for a variable that was
  /// not built.
  std::vector<Variable> variables_of(const Variable& variable) const;
  /// Returns the optimizer's variables for all model variables, in the order in which those were
  /// built. Paths begin with name().
  std::vector<Variable> variables() const;

 protected:
  /// Throws ConfigError as check_base_options() does.
  Optimizer(const std::string& class_name, const LearningRate& learning_rate,
            const BaseOptions& options = {});
  /// Returns the slots of a variable: "momentum", "velocity".
  virtual std::vector<SlotSpec> slot_specs(const Variable& variable) const;
  /// Returns a variable's weight decay, to be multiplied by the rate; none: no decay. The caller
  /// applies exclusions.
  virtual std::optional<double> weight_decay_of(const Variable& variable) const;
  /// Runs a step of an inner optimizer with reduced gradients, one for each of these built
  /// variables. Called by the wrapping optimizer. Collective.
  static void apply_reduced(Optimizer& inner, const std::vector<DTensor>& gradients,
                            const std::vector<Variable>& variables);
  /// Like apply_reduced(), but keeps all variables where `skip` (float32 0 or 1 on each GPU, which
  /// the host does not know yet) is 1. The step is counted either way.
  static void apply_unless_skipped(const detail::ScalarOnDevices& skip, Optimizer& inner,
                                   const std::vector<DTensor>& gradients,
                                   const std::vector<Variable>& variables);
  /// Replaces the loss_scale_factor of an inner optimizer. Called by the wrapping optimizer. Throws
  /// ConfigError for a factor that is not positive.
  static void set_loss_scale_of(Optimizer& inner, const std::optional<double>& factor);
  /// Replaces loss_scale_factor; implements set_loss_scale_of().
  virtual void set_loss_scale_factor(const std::optional<double>& factor);
  /// Accumulates, clips and applies the reduced gradients of a step. Collective.
  virtual void take_gradients(const std::vector<DTensor>& gradients,
                              const std::vector<Variable>& variables);
  /// Updates the variables of a step, by default with update_all() on all blocks. Overridden,
  /// together with needs_full_variable(), by optimizers whose block updates depend on other blocks
  /// of the variable. Collective.
  virtual void update_variables(const std::vector<VariableUpdate>& updates) const;
  /// Whether a block's update depends on other blocks of its variable.
  virtual bool needs_full_variable() const { return false; }
  /// Whether an update leaves elements with a gradient of 0 as they are, slots included.
  virtual bool rows_are_exact() const { return false; }
  /// Whether update_all() leaves weights and slots unchanged where skip_on() is 1, so that
  /// apply_unless_skipped() need not copy them.
  virtual bool supports_found_inf() const { return false; }
  /// The `skip` of apply_unless_skipped() on a GPU; undefined in other steps.
  at::Tensor skip_on(c10::Device gpu) const { return skip_ ? skip_->at(gpu) : at::Tensor(); }
  /// Updates all blocks of a step, by default with update() on each, small ones in parallel.
  virtual void update_all(const std::vector<UpdateArgs>& blocks) const;
  /// Updates one block.
  virtual void update(const UpdateArgs& args) const;
  /// Appends this process's non-empty blocks of an update.
  static void add_blocks(const VariableUpdate& update, std::vector<UpdateArgs>& blocks);

 private:
  friend class detail::AccumulatedGradients;
  friend class detail::GradientAccumulation;
  friend class detail::MovingAverages;
  friend class detail::PartUpdater;
  friend void detail::check_optimizer(const Layer& model, Optimizer& optimizer);
  friend Json optimizer_to_config(const OptimizerHandle& optimizer);

  struct State {
    Variable variable;
    std::vector<SlotSpec> specs = {};
    std::vector<Variable> slots = {};
    Variable average = {};
    Variable accumulator = {};
    /// The sum of the gradients since the last update that are reduced with the last of them.
    DTensor partial_sum = {};
    bool added = false;    ///< whether it contains the gradient of the running apply()
    bool is_sum = false;   ///< whether the gradient of the running update is that sum
    double decay = 0;      ///< weight decay, as a factor of the rate
    bool is_part = false;  ///< whether the variable is a part of a weight
    std::vector<Variable> all() const;
  };
  /// The variables that have a gradient, and their gradients, in the shardings of the updates.
  struct Step {
    std::vector<State*> states;
    std::vector<DTensor> gradients;
  };

  /// Returns the layout in which a variable is updated: its own, or that of its slots (ZeRO).
  static const Layout& update_layout(const Variable& variable);
  detail::ShardingPtr update_sharding(const State& state) const;
  State& build_state(const Variable& variable);
  void build_as(const Variable& part, const Variable& variable);
  /// Returns the variables that this optimizer and its inner ones were built for, in that order,
  /// without parts of variables.
  std::vector<Variable> built_for() const;
  Variable make_slot(const Variable& variable, const SlotSpec& spec) const;
  const State& state_of(const Variable& variable) const;
  double decay_of(const Variable& variable) const;
  std::vector<std::string> excluded_names() const;
  void warn_of_unused_exclusions(const std::vector<Variable>& variables);
  bool knows(const Variable& variable) const { return states_.count(variable.id()) > 0; }
  void check_step(const std::vector<DTensor>& gradients,
                  const std::vector<Variable>& variables) const;
  void apply_traced(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  void apply_ready(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  Step reduced(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  bool needs_reduction(const Variable& variable, const DTensor& gradient) const;
  void reduce(const Variable& variable, const DTensor& gradient, bool in_apply);
  Step step_of(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  void finish(const Step& step) const;
  std::vector<Variable> changed_if_skipped() const;
  void delegate_update(const Step& step) const;
  void update_weights(const Step& step);
  void update_in_parts(const std::vector<VariableUpdate>& updates) const;
  void update_averages() const;
  void constrain(const Step& step) const;

  std::string class_name_;
  LearningRate learning_rate_;
  BaseOptions options_;
  WeightDecayExclusions exclusions_;
  bool exclusions_checked_ = false;  ///< whether unused exclusions gave their warnings
  int64_t steps_ = 0;
  std::shared_ptr<detail::GradientReducer> reducer_;
  std::shared_ptr<detail::UpdateStrategy> strategy_;  ///< null: this optimizer applies updates
  std::shared_ptr<detail::MovingAverages> averages_;  ///< null without use_ema
  const detail::ScalarOnDevices* skip_ = nullptr;     ///< set during apply_unless_skipped()
  std::map<uint64_t, State> states_;
  std::vector<uint64_t> order_;
};

/// A handle to an optimizer, also by Keras' name: "adam". Copies share the optimizer.
class OptimizerHandle : public Handle<Optimizer> {
 public:
  OptimizerHandle() = default;
  using Handle::Handle;
  /// Creates the optimizer with this name, with defaults. Throws ConfigError naming the nearest
  /// one.
  OptimizerHandle(const char* name);  // NOLINT: reads as data
};

namespace detail {

/// Creates the optimizer with this Keras name, "adam", with defaults. Throws ConfigError naming the
/// nearest one.
OptimizerHandle make_optimizer(const std::string& name);

}  // namespace detail

/// Creates an optimizer that Keras serialized: {"class_name": "Adam", "config": {…}}. Throws
/// ConfigError naming `where` and the nearest class or key.
OptimizerHandle optimizer_from_config(const Json& json, const std::string& where = "optimizer");
/// Serializes an optimizer as Keras does (keras.optimizers.serialize). Exclusions from weight decay
/// are in a key of their own, "exclude_from_weight_decay", which Keras skips.
Json optimizer_to_config(const OptimizerHandle& optimizer);
namespace detail {

/// Returns Keras' class names of all optimizers that wrap no other, sorted.
std::vector<std::string> optimizer_names();

/// The table of optimizers that wrap no other, by class name; each class adds itself with a
/// Registered.
ConfigFactories<OptimizerHandle>& optimizer_factories();
/// The table of optimizers that wrap others, by class name; each class adds itself with a
/// Registered.
ConfigFactories<OptimizerHandle>& wrapping_optimizer_factories();

/// Hook that wraps an optimizer in a LossScaleOptimizer, for float16 training; set by that class.
using LossScaler = OptimizerHandle (*)(const OptimizerHandle& inner);
LossScaler& loss_scaler();

}  // namespace detail

}  // namespace tessera
