#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <tessera/framework/optimizer/optimizer.hpp>

namespace tessera::detail {

/// The sums of the gradients of several steps for one update (gradient_accumulation_steps), which
/// an optimizer's State holds: an accumulator in the layout of the update, and a partial sum of the
/// gradients that are reduced with the last of them.
class GradientAccumulation {
 public:
  explicit GradientAccumulation(Optimizer& optimizer) : optimizer_(optimizer) {}

  /// Whether the running step ends with an update; a plan shows such a step.
  bool is_update_step() const;
  /// Returns the mesh dimensions over which the gradients since the last update are added up before
  /// they are reduced: those that do not shard the update, or all if the gradient is to stay whole.
  DimMask dims_reduced_late(const Variable& variable, const DTensor& gradient,
                            const Layout& target) const;
  void add_partial_sum(Optimizer::State& state, const DTensor& gradient) const;
  /// Reduces the partial sum, if there is one, and adds it to the accumulator. Collective.
  void reduce(Optimizer::State& state) const;
  /// Reduces all partial sums, also of inner optimizers. Collective.
  void reduce() const;
  /// Divides the gradients of a step by the loss scale and averages over the accumulated steps.
  /// Returns whether this is the last of them, so that an update follows.
  bool add(Optimizer::Step& step) const;
  void reset() const;

 private:
  const BaseOptions& options() const { return optimizer_.options_; }

  Optimizer& optimizer_;
};

/// A sum of gradients that is not reduced yet.
struct UnreducedSum {
  Variable accumulator;
  DTensor partial_sums;  ///< result of stacked_sums()
};

/// The gradients that optimizers, inner ones included, have added up since their last updates.
/// While this is alive, the gradient accumulators hold all of them: what is not reduced yet is
/// reduced into copies. The optimizers are as before afterwards, so that writing a file between
/// updates does not change a bit of training.
class AccumulatedGradients {
 public:
  /// Collective.
  explicit AccumulatedGradients(const std::vector<OptimizerHandle>& optimizers);
  ~AccumulatedGradients();
  AccumulatedGradients(const AccumulatedGradients&) = delete;
  AccumulatedGradients& operator=(const AccumulatedGradients&) = delete;

  /// Returns what is not reduced yet, with the accumulators of variables().
  std::vector<UnreducedSum> unreduced() const;
  /// Replaces what these optimizers have not reduced yet. `sums` may hold accumulators of others.
  static void replace(const std::vector<OptimizerHandle>& optimizers,
                      const std::vector<UnreducedSum>& sums);

 private:
  struct Before {
    Optimizer::State* state;
    Variable accumulator;
    DTensor partial_sum;
  };
  void complete(Optimizer& optimizer);
  /// `sums` are the partial sums by the ids of their accumulators.
  static void replace_all(const std::vector<OptimizerHandle>& optimizers,
                          const std::map<uint64_t, DTensor>& sums);

  std::vector<Before> before_;
};

}  // namespace tessera::detail
