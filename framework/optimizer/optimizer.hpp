#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
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
class MovingAverages;
class PartUpdater;
class UpdateStrategy;
void check_optimizer(const Layer& model, const Optimizer& optimizer);
/// Numbers, one on each of some devices.
using NumberOnDevices = std::unordered_map<c10::Device, at::Tensor>;
}  // namespace detail

/// What the update of one block works on: a piece of a variable; tensors of one shape, contiguous.
struct UpdateArgs {
  at::Tensor weight;              ///< changed in place
  at::Tensor gradient;            ///< has the weight's dtype; only read
  std::vector<at::Tensor> slots;  ///< changed in place, in slot_specs() order
  double learning_rate = 0;       ///< rate of the step
  int64_t step = 1;               ///< number of the update, from 1
};

/// What the update of a whole variable works on. Weight and gradient are cut into the same blocks,
/// and so are slots of their shape.
struct VariableUpdate {
  DTensor weight;               ///< the weight, whose blocks are changed in place
  DTensor gradient;             ///< has the weight's dtype, is not pending; only read
  std::vector<Variable> slots;  ///< changed by assign() or in place, in slot_specs() order
  double learning_rate = 0;     ///< rate of the step
  int64_t step = 1;             ///< number of the update, from 1
};

/// A tensor that an optimizer keeps for a variable.
struct SlotSpec {
  std::string name;                 ///< Keras' name, "momentum"
  double initial_value = 0;         ///< what every element begins as
  bool begins_as_variable = false;  ///< begins as the variable's first value instead
  /// An axis of the variable that the slot lacks: it keeps a number for all of it.
  std::optional<int64_t> without_axis = std::nullopt;
};

/// Which variables decay leaves alone.
struct WeightDecayExclusions {
  std::vector<Variable> var_list = {};  ///< variables themselves
  /// RE2 expressions that match some part of a variable's own name, "bias" of "dense/bias".
  std::vector<std::string> var_names = {};
};

/// Base of all optimizers (keras.optimizers.Optimizer). Gradients arrive as the tape leaves them,
/// often pending; each is brought to its variable's layout (this is the data-parallel reduction),
/// then every block is updated where it lies. Slots, gradient accumulators and moving averages
/// follow their variable's layout, or the layout map's `slots`.
///
/// A step is, in Keras' order: gradients divided by loss_scale_factor, accumulated, clipped;
/// weights decayed and updated; moving averages; constraints.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Keras' class name, "Adam".
  const std::string& class_name() const { return class_name_; }
  /// Keras' keys of the options that every optimizer has; a class adds its own.
  virtual Json config() const;
  /// The option, else the class name in snake_case.
  const std::string& name() const { return options_.name; }

  /// The optimizers that do the work of this one; none of an ordinary one. Steps, slots and moving
  /// averages are theirs.
  virtual std::vector<OptimizerHandle> inner() const;

  /// The rate of the next step.
  virtual double learning_rate() const { return learning_rate_.at(steps_); }
  /// Replaces the rate. Throws StateError for a number in place of a schedule.
  virtual void set_learning_rate(const LearningRate& rate);
  /// Whether the rate is none that set_learning_rate() could replace by a number.
  virtual bool has_schedule() const { return learning_rate_.is_schedule(); }
  /// Updates made: steps(), divided by gradient_accumulation_steps.
  virtual int64_t iterations() const;
  /// Calls of apply(), which schedules follow (Keras' variable "iteration").
  int64_t steps() const { return steps_; }
  /// Goes on as after so many calls of apply().
  void set_steps(int64_t steps) { steps_ = steps; }

  /// The loss that gradients are to be taken of: times loss_scale_factor.
  virtual DTensor scale_loss(const DTensor& loss) const;
  /// Whether scale_loss() changes the loss: gradients may then overflow.
  virtual bool scales_loss() const { return options_.loss_scale_factor.has_value(); }
  /// Says which variables decay leaves alone, in place of earlier exclusions. Throws StateError
  /// once variables are known, ConfigError for an expression that RE2 does not take.
  void exclude_from_weight_decay(const WeightDecayExclusions& exclusions);

  /// Makes the slots of these variables, in the variables' layouts or where their placement says;
  /// those that exist keep their values and move.
  virtual void build(const std::vector<Variable>& variables);
  /// Whether some variable has slots.
  bool built() const { return !order_.empty(); }
  /// One step. Variables without a gradient (undefined) are left alone. Collective: reduces the
  /// gradients and, for clipping, their norms. Throws StateError if no gradient is defined,
  /// ConfigError unless there is one for each variable, ShapeError unless it has its shape.
  void apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  /// What GradientOptions::on_ready is to be for the gradient of scale_loss() with respect to these
  /// variables: where several processes share a mesh, gradients are reduced while the backward pass
  /// goes on, and apply() waits for them. Without it apply() begins the reductions.
  std::function<void(size_t, const DTensor&)> reduce_when_ready(
      const std::vector<Variable>& variables);
  /// What reduces the gradients of a step. Call reset() where a step that has called
  /// reduce_when_ready() ends without apply().
  detail::GradientReducer& reducer() { return *reducer_; }
  /// Has `strategy` make the updates of apply(), which changes neither weights nor slots itself;
  /// null: the optimizer makes them. Throws ConfigError for an optimizer that has inner ones.
  void set_update_strategy(std::shared_ptr<detail::UpdateStrategy> strategy);

  /// With use_ema the variables' values become their moving averages, if there was a step. Throws
  /// StateError for a variable not built.
  void finalize_variable_values(const std::vector<Variable>& variables);

  /// What a checkpoint keeps beside steps, rate and variables; null: nothing.
  virtual Json state() const { return nullptr; }
  /// Takes what state() gave. Throws ConfigError for anything else.
  virtual void restore(const Json& /*state*/) {}

  /// Everything kept for one variable, made by build() or the first step: slots in slot_specs()
  /// order, then "average" (use_ema), then "gradient_accumulator". Their paths are
  /// "adam/hidden/kernel/momentum". Throws StateError for a variable not built.
  std::vector<Variable> variables_of(const Variable& variable) const;
  /// Everything kept for all variables, in the order in which they were built. Paths begin with
  /// name().
  std::vector<Variable> variables() const;

 protected:
  /// Throws ConfigError as check_base_options() does.
  Optimizer(const std::string& class_name, const LearningRate& learning_rate,
            const BaseOptions& options = {});
  /// What updates keep of a variable: "momentum", "velocity".
  virtual std::vector<SlotSpec> slot_specs(const Variable& variable) const;
  /// The share of a variable's decay in the rate; none: it does not decay, nor do exclusions.
  virtual std::optional<double> weight_decay_of(const Variable& variable) const;
  /// What an optimizer around others calls of one inside: a step by gradients that are reduced, one
  /// for each of some built variables. Collective.
  static void apply_reduced(Optimizer& inner, const std::vector<DTensor>& gradients,
                            const std::vector<Variable>& variables);
  /// The same of a step on GPUs of which the host does not know yet whether it is to be one: where
  /// `skip`, 0 or 1 of float32 on each GPU, is 1, variables stay what they are. The step counts.
  static void apply_unless(const detail::NumberOnDevices& skip, Optimizer& inner,
                           const std::vector<DTensor>& gradients,
                           const std::vector<Variable>& variables);
  /// What an optimizer around others calls of one inside: replaces its loss_scale_factor. Throws
  /// ConfigError for a factor that is not positive.
  static void set_loss_scale_of(Optimizer& inner, const std::optional<double>& factor);
  /// Replaces loss_scale_factor, as set_loss_scale_of() asks.
  virtual void set_loss_scale_factor(const std::optional<double>& factor);
  /// What becomes of the reduced gradients of a step. Collective.
  virtual void take_gradients(const std::vector<DTensor>& gradients,
                              const std::vector<Variable>& variables);
  /// The updates of a step: update_all() on all blocks. An optimizer for which a block's update
  /// depends on other blocks of its variable has its own, and updates_whole(). Collective.
  virtual void update_variables(const std::vector<VariableUpdate>& updates) const;
  /// Whether a block's update depends on other blocks of its variable.
  virtual bool updates_whole() const { return false; }
  /// Whether update_all() itself leaves weights and slots as they are where skip_on() is 1, so that
  /// apply_unless() need not keep copies of them.
  virtual bool heeds_skip() const { return false; }
  /// What apply_unless() was given for a GPU; undefined in other steps.
  at::Tensor skip_on(c10::Device gpu) const { return skip_ ? skip_->at(gpu) : at::Tensor(); }
  /// The updates of all blocks of a step: update() on each, small ones in parallel.
  virtual void update_all(const std::vector<UpdateArgs>& blocks) const;
  /// The update of one block.
  virtual void update(const UpdateArgs& args) const;
  /// The blocks of an update that are here and hold something.
  static void add_blocks(const VariableUpdate& update, std::vector<UpdateArgs>& blocks);

 private:
  friend class detail::MovingAverages;
  friend class detail::PartUpdater;
  friend void detail::check_optimizer(const Layer& model, const Optimizer& optimizer);

  struct State {
    Variable variable;
    std::vector<SlotSpec> specs = {};
    std::vector<Variable> slots = {};
    Variable average = {};
    Variable accumulator = {};
    double decay = 0;      ///< a step takes rate · decay of the weight away
    bool is_part = false;  ///< whether it is of a part of a weight
    std::vector<Variable> all() const;
  };
  struct Step;

  /// Where a variable is updated: where it rests, or cut further with its slots (ZeRO).
  static const Layout& update_layout(const Variable& variable);
  detail::ShardingPtr update_form(const State& state) const;
  State& build_state(const Variable& variable);
  void build_as(const Variable& part, const Variable& whole);
  /// The variables that it was built for, in that order, but not parts of some; of an optimizer
  /// around others, theirs.
  std::vector<Variable> built_for() const;
  Variable make_slot(const Variable& variable, const SlotSpec& spec) const;
  const State& state_of(const Variable& variable) const;
  double decay_of(const Variable& variable) const;
  bool knows(const Variable& variable) const { return states_.count(variable.id()) > 0; }
  void check_step(const std::vector<DTensor>& gradients,
                  const std::vector<Variable>& variables) const;
  void apply_ready(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  Step reduced(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  void reduce_early(const Variable& variable, const DTensor& gradient);
  bool accumulate(Step& step);
  Step step_of(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  void finish(const Step& step) const;
  std::vector<Variable> changed_if_skipped() const;
  void hand_over(const Step& step) const;
  void update_weights(const Step& step);
  void reset_accumulators();
  void update_averages() const;
  void constrain(const Step& step) const;

  std::string class_name_;
  LearningRate learning_rate_;
  BaseOptions options_;
  WeightDecayExclusions exclusions_;
  int64_t steps_ = 0;
  std::shared_ptr<detail::GradientReducer> reducer_;
  std::shared_ptr<detail::UpdateStrategy> strategy_;  ///< null: updates are made here
  std::shared_ptr<detail::MovingAverages> averages_;  ///< null: none are kept
  const detail::NumberOnDevices* skip_ = nullptr;     ///< while apply_unless() makes a step
  std::map<uint64_t, State> states_;
  std::vector<uint64_t> order_;
};

/// A handle to an optimizer, also by Keras' name: "adam". Copies share its state.
class OptimizerHandle : public detail::Handle<Optimizer> {
 public:
  OptimizerHandle() = default;
  using Handle::Handle;
  /// The optimizer of this name with its defaults. Throws ConfigError naming the nearest one.
  OptimizerHandle(const char* name);  // NOLINT: reads as data
};

namespace detail {

/// The optimizer of a Keras name, "adam", with its defaults. Throws ConfigError naming the nearest
/// one.
OptimizerHandle make_optimizer(const std::string& name);

}  // namespace detail

/// The optimizer that Keras serialized: {"class_name": "Adam", "config": {…}}. Throws ConfigError
/// naming `where` and the nearest class or key.
OptimizerHandle optimizer_from_config(const Json& json, const std::string& where = "optimizer");
/// An optimizer as Keras serializes it (keras.optimizers.serialize).
Json optimizer_to_config(const OptimizerHandle& optimizer);
namespace detail {

/// Keras' class names of all optimizers that work without another one, sorted.
std::vector<std::string> optimizer_names();

/// The table of optimizers that work without another one, by class name; each class adds itself to
/// it by a Registered.
ConfigFactories<OptimizerHandle>& optimizer_factories();
/// The table of optimizers around others, by class name; each class adds itself to it by a
/// Registered.
ConfigFactories<OptimizerHandle>& wrapping_optimizer_factories();

/// Makes of an optimizer one that scales the loss as gradients of half types need it. The class
/// that does so puts its function here.
using LossScaler = OptimizerHandle (*)(const OptimizerHandle& inner);
LossScaler& loss_scaler();

}  // namespace detail

}  // namespace tessera
