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

/// What an operation of one's own is made of.
struct CustomOpOptions {
  /// How it may be cut: the axes of inputs and output by names, "b m k, b k n -> b m n". What an
  /// input's axis is called, the output's axis of that name is cut like; inputs are parted by
  /// commas. A name missing from the output is summed over: `forward` gives the addend of its
  /// block. "!c" keeps an axis whole; "." is an axis of no name, of extent 1 in the output. Empty:
  /// elementwise, with NumPy's broadcast of the inputs.
  std::string rule = "";
  /// The output of blocks of the inputs, in plain ATen. A block is never empty, and may be part of
  /// each axis that `rule` does not keep whole. Called by several threads.
  std::function<at::Tensor(std::span<const at::Tensor> inputs)> forward = {};
  /// Gradients of the inputs, in their order, in operations on DTensors; an empty one for an input
  /// that has none. `dy` is the gradient of the output. Without it the operation has none.
  std::function<std::vector<DTensor>(const std::vector<DTensor>& inputs, const DTensor& output,
                                     const DTensor& dy)>
      gradient = {};
  /// The output's global shape; empty: as `rule` says.
  std::function<Shape(const std::vector<Shape>& inputs)> shape = {};
};

/// An operation of one's own on sharded tensors: an ATen function of blocks, how it may be cut and
/// its gradient (tf.custom_gradient, torch.autograd.Function). It runs under every layout, is
/// recorded with the step, and seen by tapes as those of `ops` are. The output has the dtype of the
/// first input.
///
///     static const ops::CustomOp softplus("my_softplus", {
///         .forward = [](std::span<const at::Tensor> x) { return at::softplus(x[0]); },
///         .gradient = [](const std::vector<DTensor>& x, const DTensor&, const DTensor& dy) {
///           return std::vector<DTensor>{dy * ops::sigmoid(x[0])};
///         }});
///     DTensor y = softplus({x});
///
/// Make it once, as a static or a member: each has its own plans, which the program keeps.
class CustomOp {
 public:
  /// Throws ConfigError for an empty name, without `forward`, and for a rule that cannot be read
  /// or whose output has an axis that no input names, without `shape`.
  CustomOp(const std::string& name, const CustomOpOptions& options);

  /// Its value. Communicates what the rule demands of the inputs' layouts. Throws ShapeError for
  /// inputs that the rule does not fit, and StateError if `forward` or `gradient` gives another
  /// shape or number than they must.
  DTensor operator()(const std::vector<DTensor>& inputs) const;

 private:
  const detail::CustomOpBody* body_;  ///< kept by the program
};

}  // namespace tessera::ops
