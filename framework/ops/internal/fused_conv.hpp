#pragma once

#include <memory>
#include <tuple>

#include <tessera/framework/ops/engine/op.hpp>
#include <tessera/framework/ops/internal/convolution.hpp>
#include <tessera/framework/ops/internal/fused_activation.hpp>

namespace tessera::detail {

/// Copies of kernels, scaled and in the order in which oneDNN reads them fastest. Operations may
/// share them; thread-safe.
class PackedKernels;

/// x (n, spatial…, [g,] c), kernel, bias ([g,] o), with `scales` factors of the kernel ([g,] o)
/// and, with `adds`, a tensor of the result's shape -> activation(conv(x, kernel · factors) + bias
/// + residual), without a gradient: for replayed steps. Kernel and factors may be float32 among
/// half precision; their product is rounded. On CPUs, with two spatial axes and a dtype that
/// is_fast_in_onednn(), it is one call of oneDNN or, for some windows of one element in float32, a
/// matrix product.
struct FusedConvOp : Convolution {
  static constexpr std::string_view name = "fused_conv";
  FusedActivation activation = FusedActivation::none;
  bool scales = false, adds = false;
  /// If set, kernels are kept packed as long as the bias is the same tensor: who changes a kernel
  /// must compute a new bias.
  std::shared_ptr<PackedKernels> packed = {};

  auto attributes() const { return std::tie(windows, grouped, activation, scales, adds); }
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
  at::Tensor scaled_kernel(const LocalArgs& in) const;
  /// Whether each channel has a window of its own, of a size for which vectorized loops take less
  /// time than oneDNN, whose calls cost 40 us to start.
  bool is_by_channel(const at::Tensor& x, const at::Tensor& kernel) const;
  at::Tensor by_channel(const LocalArgs& in, const at::Tensor& x, const Local& local) const;
  size_t residual_at() const { return scales ? 4 : 3; }
};

std::shared_ptr<PackedKernels> make_packed_kernels();
/// Releases all copies.
void clear(PackedKernels& kernels);
/// Returns how many kernels have been packed in this process.
int64_t packed_kernels();

}  // namespace tessera::detail
