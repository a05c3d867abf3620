#pragma once

#include <memory>
#include <tuple>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/ops/internal/convolution.hpp>

namespace tessera::detail {

/// The activation of a fused convolution.
enum class FusedActivation : uint8_t { none, relu, relu6 };

/// oneDNN's copies of kernels, in the order in which it reads them fastest. Operations may share
/// them; thread-safe.
class PackedKernels;

/// x (n, spatial…, [g,] c), kernel, bias ([g,] o) and, with `adds`, a tensor of the result's shape
/// -> activation(conv(x, kernel) + bias + residual), without a gradient: for predictions. On CPUs,
/// with two spatial axes and float32, it is one call of oneDNN or, for some windows of one element,
/// a matrix product.
struct FusedConvOp : Convolution {
  static constexpr std::string_view name = "fused_conv";
  FusedActivation activation = FusedActivation::none;
  bool adds = false;
  /// If set, kernels are kept packed: for kernels whose memory does not change while it is in use.
  std::shared_ptr<PackedKernels> packed = {};

  auto attributes() const { return std::tie(windows, grouped, activation, adds); }
  Specs infer(const Specs& in) const;
  Rule rule(const Specs& in) const;
  Interval window(size_t input, int64_t axis, Interval out, const Specs& in) const;
  Tensors forward(const LocalArgs& in) const;
  static Samples<FusedConvOp> samples();

 private:
  /// Whether the result is a product of pixels and kernel that takes less time than oneDNN's
  /// convolution.
  bool is_product(const LocalArgs& in) const;
  at::Tensor product(const LocalArgs& in) const;
};

std::shared_ptr<PackedKernels> make_packed_kernels();
/// Returns how many kernels have been packed in this process.
int64_t packed_kernels();

}  // namespace tessera::detail
