#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/nn/learning_rate.hpp>
#include <tessera/framework/nn/optimizer_options.hpp>
#include <tessera/framework/nn/variable.hpp>

namespace tessera {

class GradientReducer;

/// What the update of one block works on: a piece of a variable; tensors of one shape, contiguous.
struct UpdateArgs {
  at::Tensor weight;              ///< changed in place
  at::Tensor gradient;            ///< of the weight's dtype; only read
  std::vector<at::Tensor> slots;  ///< changed in place, in slot_specs() order
  double learning_rate = 0;
  int64_t step = 1;  ///< of iterations, counts from 1
};

/// A tensor that an optimizer keeps for every variable.
struct SlotSpec {
  std::string name;  ///< Keras', "momentum"
  double initial_value = 0;
};

/// Which variables decay leaves alone.
struct WeightDecayExclusions {
  std::vector<Variable> var_list = {};
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

  /// The rate of the next step.
  double learning_rate() const { return learning_rate_.at(steps_); }
  /// Throws StateError for a number in place of a schedule.
  void set_learning_rate(const LearningRate& rate);
  bool has_schedule() const { return learning_rate_.is_schedule(); }
  /// Updates made: steps(), divided by gradient_accumulation_steps.
  int64_t iterations() const;
  /// Calls of apply(), which schedules follow (Keras' variable "iteration").
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

  /// The loss that gradients are to be taken of: times loss_scale_factor.
  DTensor scale_loss(const DTensor& loss) const;
  /// Replaces earlier exclusions. Throws StateError once variables are known, ConfigError for an
  /// expression that RE2 does not take.
  void exclude_from_weight_decay(const WeightDecayExclusions& exclusions);

  /// Makes the slots of these variables, in the variables' layouts or where their placement says;
  /// those that exist keep their values and move.
  void build(const std::vector<Variable>& variables);
  bool built() const { return !order_.empty(); }
  /// One step. Variables without a gradient (undefined) are left alone. Collective: reduces the
  /// gradients and, for clipping, their norms. Throws StateError if no gradient is defined,
  /// ConfigError unless there is one for each variable, ShapeError unless it has its shape.
  void apply(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  /// For GradientOptions::on_ready of the gradient of scale_loss() with respect to these variables:
  /// where several processes share a mesh, gradients are reduced while the backward pass goes on,
  /// and apply() waits for them. Without it apply() begins the reductions.
  std::function<void(size_t, const DTensor&)> reduce_when_ready(
      const std::vector<Variable>& variables);
  /// What reduces the gradients of a step. Call reset() where a step that has called
  /// reduce_when_ready() ends without apply().
  GradientReducer& reducer() { return *reducer_; }
  /// What takes the place of the updates of a step: it gets the variables and their gradients,
  /// divided by the loss scale, averaged over accumulated steps and clipped, each in its variable's
  /// layout.
  using UpdateSink =
      std::function<void(const std::vector<Variable>&, const std::vector<DTensor>&)>;
  /// From now on apply() hands its gradients to `sink` and changes neither weights nor slots, which
  /// rest elsewhere; an empty function: as before.
  void send_updates_to(UpdateSink sink) { sink_ = std::move(sink); }
  /// One update by gradients that a sink was given: decay, update, averages, constraints. Counts as
  /// gradient_accumulation_steps calls of apply().
  void apply_ready(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  /// Makes the slots of a variable that is a part of `whole`, which decays if that does. Throws
  /// StateError if it has some.
  void build_part(const Variable& part, const Variable& whole);

  /// With use_ema the variables' values become their moving averages, if there was a step. Throws
  /// StateError for a variable not built.
  void finalize_variable_values(const std::vector<Variable>& variables);

  /// The slots of one variable, in slot_specs() order; made by build() or the first step. Their
  /// paths are "adam/hidden/kernel/momentum". Throws StateError for a variable not built.
  const std::vector<Variable>& slots(const Variable& variable) const;
  /// Everything kept for one variable: slots, then "average" (use_ema), then
  /// "gradient_accumulator". Throws StateError for a variable not built.
  std::vector<Variable> variables_of(const Variable& variable) const;
  /// The same for all variables, in the order in which they were built. Paths begin with name().
  std::vector<Variable> variables() const;

 protected:
  /// Throws ConfigError as check_base_options() does.
  Optimizer(const std::string& class_name, const LearningRate& learning_rate,
            const BaseOptions& options = {});
  /// What update() keeps of every variable: "momentum", "velocity".
  virtual std::vector<SlotSpec> slot_specs() const = 0;
  /// The update of one block.
  virtual void update(const UpdateArgs& args) const = 0;
  /// The updates of all blocks of a step: update() on each, small ones in parallel.
  virtual void update_all(const std::vector<UpdateArgs>& blocks) const;

 private:
  struct State {
    Variable variable;
    std::vector<Variable> slots;
    Variable average = {};
    Variable accumulator = {};
    bool decays = true;
    std::vector<Variable> all() const;
  };
  struct Step;

  /// Where a variable is updated: where it rests, or cut further with its slots (ZeRO).
  static const Layout& update_layout(const Variable& variable);
  static ShardingPtr update_form(const State& state);
  State& build_state(const Variable& variable);
  const State& state_of(const Variable& variable) const;
  bool decays(const Variable& variable) const;
  void check_step(const std::vector<DTensor>& gradients,
                  const std::vector<Variable>& variables) const;
  Step reduced(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  void reduce_early(const Variable& variable, const DTensor& gradient);
  bool accumulate(Step& step);
  Step step_of(const std::vector<DTensor>& gradients, const std::vector<Variable>& variables);
  void finish(const Step& step);
  void hand_over(const Step& step) const;
  void update_weights(const Step& step);
  void reset_accumulators();
  void update_averages();
  void overwrite_weights();
  void constrain(const Step& step) const;

  std::string class_name_;
  LearningRate learning_rate_;
  BaseOptions options_;
  WeightDecayExclusions exclusions_;
  int64_t steps_ = 0;
  std::shared_ptr<GradientReducer> reducer_;
  UpdateSink sink_;
  std::map<uint64_t, State> states_;
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
