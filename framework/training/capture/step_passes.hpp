#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/ops/internal/fused_conv.hpp>
#include <tessera/framework/training/capture/captured_step.hpp>

namespace tessera::detail {

/// Rewrites a captured step. What relies on weights that stay as they are is for predictions and
/// tests: steps without actions that assign Variables. The results are those of the step before, up
/// to rounding.
class StepPasses {
 public:
  /// `packed` keeps the kernels of the fused convolutions.
  StepPasses(CapturedStep& step, std::shared_ptr<PackedKernels> packed)
      : step_(step), packed_(std::move(packed)) {}
  void run();

 private:
  using Instruction = CapturedStep::Instruction;
  using Operand = CapturedStep::Operand;
  /// A convolution and the operations on its result that one operation can stand for.
  struct Chain;
  /// The instructions of an activation and, in training, of its gradient.
  struct Activated {
    FusedActivation kind = FusedActivation::none;
    size_t activation = 0;
    std::optional<size_t> gradient = {};
  };

  /// Moves operations on weights alone to the list that runs only when weights have changed. Those
  /// that communicate, or need more memory than their inputs, stay.
  void hoist_weights();
  /// Replaces convolutions with the zeros around their image, and with the bias, frozen
  /// normalization, residual and activation that follow, by one operation with a kernel that is
  /// scaled and packed once.
  void fuse_convolutions();

  /// Has normalizations apply the relu or relu6 behind them and, in training, their gradients that
  /// of the activation. Has convolutions add the bias behind them, and apply the activation.
  void fuse_activations();

  /// Returns the activation that alone, but for its gradient, reads what an instruction computes.
  std::optional<Activated> activation_behind(size_t sum) const;
  /// Gives an instruction the result of the activation behind it.
  void take_activation(Instruction& fused, const Activated& found);
  void fuse_normalization(size_t at);
  void fuse_bias(size_t at);
  /// Has all readers of an activation's gradient compute it themselves, if they are gradients of
  /// the normalization of `x`.
  void fuse_gradient(size_t gradient, FusedActivation kind, const Operand& x);
  /// Returns the instructions that read the value, in order.
  std::vector<size_t> readers(int32_t value) const;
  bool is_result(int32_t value) const;
  /// Returns an instruction without operands for a plan of FusedConvOp.
  static Instruction fused_convolution(const std::shared_ptr<OpPlan>& plan,
                                       const std::string& label);
  /// Whether the plan reads its input number `i` as it is, without communication.
  static bool reads(const OpPlan& plan, size_t i);
  /// Whether the plan computes from its inputs as they are, without communication.
  static bool is_local(const OpPlan& plan);
  void drop_removed();

  Chain chain_from(size_t conv) const;
  /// Adds the zeros around the chain's image to its windows.
  void take_padding(Chain& chain) const;
  /// Returns the instruction that computes the operand, if only `reader` reads it.
  std::optional<size_t> producer_for(const Operand& operand, size_t reader) const;
  bool extend(Chain& chain, size_t next) const;
  bool fuse(const Chain& chain);
  /// Returns the only instruction that reads the value; none if there are several or if it is a
  /// result.
  std::optional<size_t> only_reader(int32_t value) const;
  /// Whether the operand is computed from weights alone.
  bool is_weight(const Operand& operand) const;
  /// Returns the float32 weight that was cast to the operand; else the operand.
  Operand uncast(const Operand& operand) const;
  DTensor value_of(const Operand& operand) const;
  int32_t add_value();

  CapturedStep& step_;
  std::shared_ptr<PackedKernels> packed_;
  std::vector<bool> from_weights_;  ///< by number of the value
  std::vector<bool> removed_;       ///< by instruction
};

}  // namespace tessera::detail
