#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {
struct CustomOpBody;
}  // namespace tessera::detail

namespace tessera::ops {

/// The options of CustomOp.
struct CustomOpOptions {
  /// Sharding rule: names the axes of the inputs, separated by commas, and of the output, as in
  /// "b m k, b k n -> b m n". Axes of one name are sharded together. A name missing from the output
  /// is summed over: `forward` returns its block's partial sum. "!c" keeps an axis replicated; "."
  /// is an unnamed axis, of extent 1 in the output. If empty, the operation is elementwise, with
  /// NumPy broadcasting of the inputs.
  std::string rule = "";
  /// Computes the output's block from blocks of the inputs, in plain ATen. A block is never empty
  /// and may cover only part of each axis that `rule` does not keep replicated. Called from several
  /// threads.
  std::function<at::Tensor(std::span<const at::Tensor> inputs)> forward = {};
  /// Returns the gradients of the inputs, in their order, computed with operations on DTensors; an
  /// undefined DTensor for an input that has none. `dy` is the gradient of the output. If empty,
  /// the operation is not differentiable.
  std::function<std::vector<DTensor>(const std::vector<DTensor>& inputs, const DTensor& output,
                                     const DTensor& dy)>
      gradient = {};
  /// Returns the output's global shape (default: derived from `rule`).
  std::function<Shape(const std::vector<Shape>& inputs)> shape = {};
};

/// A user-defined operation on sharded tensors: an ATen function on blocks, its sharding rule and
/// its gradient (tf.custom_gradient, torch.autograd.Function). Like the operations of `ops`, it
/// runs under every layout, is captured with the step and is recorded by tapes. The output has the
/// dtype of the first input.
///
///     static const ops::CustomOp softplus("my_softplus", {
///         .forward = [](std::span<const at::Tensor> x) { return at::softplus(x[0]); },
///         .gradient = [](const std::vector<DTensor>& x, const DTensor&, const DTensor& dy) {
///           return std::vector<DTensor>{dy * ops::sigmoid(x[0])};
///         }});
///     DTensor y = softplus({x});
///
/// Construct it once, as a static or a member: each CustomOp has plans of its own, and its
/// definition is never freed.
class CustomOp {
 public:
  /// Throws ConfigError for an empty name, a missing `forward`, a rule that cannot be parsed, and,
  /// without `shape`, a rule whose output has an axis that no input names.
  CustomOp(const std::string& name, const CustomOpOptions& options);

  /// Runs the operation. Communicates only to bring the inputs to layouts that the rule allows.
  /// Throws ShapeError for inputs that do not fit the rule, and StateError if `forward` or
  /// `gradient` returns a wrong shape or a wrong number of gradients.
  DTensor operator()(const std::vector<DTensor>& inputs) const;

 private:
  const detail::CustomOpBody* body_;  ///< never freed
};

}  // namespace tessera::ops
