#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

#include <tessera/framework/ops/internal/fused_activation.hpp>

namespace tessera::detail {

/// How a normalization sees its input: as (outer, rows, groups, features). Moments are taken over
/// rows and features, weights lie along groups and features. Batch normalization has no outer and
/// feature axis (1), layer normalization no rows and groups, group normalization has all four.
struct NormShape {
  int64_t outer = 1, rows = 1, groups = 1, features = 1;
  int64_t moments() const { return outer * groups; }
  int64_t weights() const { return groups * features; }
};

/// The inputs of one block. x and dy have `shape`'s elements, mean and factor (1 / standard
/// deviation) one element for each outer and group, scale one for each weight; all are contiguous,
/// float32 or float64. On CPUs, x, y, dy and results may be bfloat16, and the others float32; they
/// are read in one pass, with sums in float64. With an activation, `y` is its result, like x, of
/// which gradients read whether it let dy pass.
struct NormBlock {
  NormShape shape;
  at::Tensor x, mean = {}, factor = {}, scale = {};
  FusedActivation activation = FusedActivation::none;
  at::Tensor y = {};
};

/// Returns the sums of x and x² for each outer and group: (2, outer · groups), float64. Only
/// `shape` and `x` are read.
at::Tensor norm_sums(const NormBlock& block);
/// Returns activation((x - mean) · factor · scale + offset).
at::Tensor norm_apply(const NormBlock& block, const at::Tensor& offset);
/// With h = (x - mean) · factor, and dy 0 where the activation did not let it pass: returns the
/// sums of dy · scale and dy · scale · h for each outer and group, (2, outer · groups), and the
/// sums of dy and dy · h for each weight, (2, weights), in float64. If not `scaled`: only the sums
/// of dy and dy · h for each outer and group; there must be one feature.
std::pair<at::Tensor, at::Tensor> norm_gradient_sums(const NormBlock& block, const at::Tensor& dy,
                                                     bool scaled = true);
/// Returns (dy · scale - first - h · second) · factor, with one element of `first` and `second` for
/// each outer and group.
at::Tensor norm_gradient(const NormBlock& block, const at::Tensor& dy, const at::Tensor& first,
                         const at::Tensor& second);

}  // namespace tessera::detail
