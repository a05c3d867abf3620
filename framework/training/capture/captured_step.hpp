#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/util/SmallVector.h>

#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/tensor/internal/memory_planner.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>

namespace tessera::detail {

class PackedKernels;

/// A captured step: a list of operations with their plans, and of actions such as the optimizer's,
/// on numbered values. run() replays it on another batch of the same signature, without layers,
/// tape and dispatch. Variables are read and written directly. Passes (step_passes.hpp) may rewrite
/// the list.
class CapturedStep {
 public:
  explicit CapturedStep(std::shared_ptr<Arena> buffer) : memory_(std::move(buffer)) {}

  /// Replays the step and returns its results: the loss, or the outputs of a prediction. Random
  /// draws follow `step`, the optimizer's. Collective. Throws what operations and actions throw.
  std::vector<DTensor> run(const Batch& batch, int64_t step);
  /// Compares with a step captured from the same code and batch signature now: returns the first
  /// operation, operand or number that differs at this step of the optimizer; empty if none does.
  std::string difference(const CapturedStep& other, int64_t step) const;
  /// Whether all Variables have the layouts, and the same ones are trainable, as in the capture.
  bool fits() const;
  /// Whether the last run() had performed an action when it ended or threw.
  bool performed_action() const { return performed_action_; }
  size_t instructions() const { return instructions_.size(); }
  /// Numbers of operations that compute from weights alone, and that stand for several.
  size_t hoisted() const { return weights_->instructions.size(); }
  size_t fused() const { return fused_; }
  /// Returns the bytes of this process's copies of weights that fused operations read; steps that
  /// share them return a part each.
  double packed_bytes() const {
    return weights_->packed_bytes / static_cast<double>(weights_.use_count());
  }
  /// Takes the values that the other step computes from weights alone, if this one computes the
  /// same, so that both have one copy of them. Returns whether it does.
  bool share_weights(const CapturedStep& other);
  /// Releases the values computed from weights alone; the next run computes them again.
  void release_weights();
  MemoryPlanner::Stats memory() const { return memory_.stats(); }

 private:
  friend class StepCapturer;
  friend class StepPasses;
  /// A numbered value, a Variable's, or none.
  struct Operand {
    enum class Kind : uint8_t { value, variable, none } kind = Kind::none;
    int32_t number = 0;
    bool operator==(const Operand&) const = default;
  };
  struct Instruction {
    const OpInfo* info = nullptr;
    std::shared_ptr<const void> op = {};
    std::shared_ptr<OpPlan> plan = {};
    SideEffect action = {};
    Changes changes = {};  ///< what the action changes
    std::function<at::Tensor(int64_t step)> host = {};
    /// Computes the outputs with several operations; its name and numbers tell which.
    std::function<std::vector<DTensor>(std::span<const DTensor>)> compute = {};
    std::pair<std::string_view, std::vector<double>> computes = {};
    Mesh mesh = {};  ///< mesh of a host input
    c10::SmallVector<Operand, 4> in = {};
    c10::SmallVector<int32_t, 2> out = {};
    c10::SmallVector<int32_t, 4> released = {};  ///< values to release afterwards
    std::string label = {};                      ///< label for comm logs and communicators
  };
  struct CapturedVariable {
    Variable variable;
    bool trainable = false;
    std::optional<Layout> use = std::nullopt;
    bool reshard_after_forward = false;
    ShardingPtr sharding = {};
  };
  /// Values that are computed from weights alone, which several steps may share.
  struct FromWeights {
    std::vector<Instruction> instructions = {};  ///< run only if a weight has changed
    /// Versions of all variables as of the last run.
    std::vector<uint64_t> versions = {};
    std::vector<DTensor> values = {};  ///< in the order of `kept`
    std::vector<int32_t> kept = {};    ///< numbers of the values that steps read
    int64_t runs = 0;                  ///< so far
    double packed_bytes = 0;
    bool ready = false;
  };
  using Values = c10::SmallVector<DTensor, 4>;

  std::string difference(const Instruction& mine, const Instruction& other, int64_t step) const;
  void run(const Instruction& instruction, int64_t step);
  void run_op(const Instruction& instruction, const Values& in);
  void find_last_uses();
  /// Computes what depends on weights alone, if one of these was assigned since the last time.
  void update_from_weights(int64_t step);

  std::vector<Instruction> instructions_;
  std::shared_ptr<FromWeights> weights_ = std::make_shared<FromWeights>();
  int64_t weights_run_ = 0;  ///< the run of `weights_` whose values are in `values_`
  size_t fused_ = 0;
  std::vector<CapturedVariable> variables_;
  std::vector<DTensor> values_;  ///< by number; constants persist, others live during a run
  std::vector<int32_t> batch_;   ///< value numbers of the batch's x, y, sample_weight
  std::vector<bool> constant_;   ///< by number
  std::vector<bool> kept_;       ///< by number: values of `weights_` that `instructions_` use
  std::vector<int32_t> results_;
  bool performed_action_ = false;
  MemoryPlanner memory_;
};

/// Listens to an eager step and captures it.
class StepCapturer final : public OpListener {
 public:
  /// `step`: the optimizer's; `any_code`: whether user-defined code may be captured, too; `packed`:
  /// if set, finish() runs the passes for steps that leave weights as they are, and it keeps their
  /// kernels.
  StepCapturer(const Batch& batch, const std::vector<Variable>& variables, int64_t step,
               bool any_code, std::shared_ptr<PackedKernels> packed, std::shared_ptr<Arena> buffer);

  /// Returns the captured step, which computes `results`; null if it cannot be replayed: see why().
  std::unique_ptr<CapturedStep> finish(const std::vector<DTensor>& results);
  const std::string& why() const { return reason_; }

  void constant(const DTensor& made) override;
  void input(const DTensor& made, int64_t step, std::function<at::Tensor(int64_t)> host) override;
  void ran(const OpInfo& info, const std::shared_ptr<const void>& op,
           const std::shared_ptr<OpPlan>& plan, std::span<const DTensor> in,
           std::span<const DTensor> out) override;
  void action(std::span<const DTensor> in, const SideEffect& run, Changes changes) override;
  void user_code(const std::string& what) override;
  void stop(const std::string& why) override;

 private:
  using Operand = CapturedStep::Operand;
  int32_t number(const DTensor& value);
  Operand operand(const DTensor& value);
  CapturedStep::Instruction& add(std::span<const DTensor> in);

  int64_t step_;
  bool any_code_;
  std::shared_ptr<PackedKernels> packed_;
  std::unique_ptr<CapturedStep> captured_;
  std::unordered_map<uint64_t, int32_t> numbers_;    ///< value numbers by tensor id
  std::unordered_map<uint64_t, int32_t> variables_;  ///< Variable numbers by Variable id
  std::string reason_;
};

}  // namespace tessera::detail
