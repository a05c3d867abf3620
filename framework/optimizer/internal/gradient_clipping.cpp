#include <tessera/framework/optimizer/internal/gradient_clipping.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/optimizer/internal/block_sums.hpp>
#include <tessera/framework/optimizer/internal/for_each_block.hpp>

namespace tessera::detail {
namespace {

/// Returns the factors min(1, bound / norm) for sums of squares; NaN for NaN.
at::Tensor factors_of(const at::Tensor& squares, double bound) {
  return at::scalar_tensor(bound, at::kDouble).div(squares.sqrt()).clamp_max_(1);
}

/// Clips the norm of each gradient.
std::vector<DTensor> clip_each(const std::vector<DTensor>& gradients, double bound) {
  ValueNumbers factors(gradients.size());
  for (const ValueSet& set : squared_norms(gradients)) {
    factors.add(set.members, on_each_device(set, [bound](const at::Tensor& squares) {
                  return factors_of(squares, bound);
                }));
  }
  return map_blocks(gradients, [&](size_t v, const at::Tensor& block) {
    if (!block.is_cpu()) return block.mul(factors.on_gpu(v, block.device()));
    const double factor = factors.on_host(v);
    return factor == 1 ? block : block.mul(factor);
  });
}

/// Clips the global norm of all gradients.
std::vector<DTensor> clip_together(const std::vector<DTensor>& gradients, double bound) {
  const std::vector<ValueSet> sets = squared_norms_together(gradients);
  ScalarOnDevices factors;
  for (const at::Tensor& block : blocks_of(gradients)) {
    at::Tensor& factor = factors[block.device()];
    if (factor.defined()) continue;
    const at::Tensor total = total_of(sets, block.device());
    // Adds NaN if the total is not finite, else 0.
    factor = factors_of(total, bound).add_(total.mul(0));
  }
  return scaled(gradients, factors);
}

/// Returns the values in dtypes in which products are not rounded to 8 or 11 bits.
std::vector<DTensor> widened(const std::vector<DTensor>& values) {
  std::vector<DTensor> wide;
  for (const DTensor& value : values) {
    const bool narrow = at::isReducedFloatingType(value.dtype());
    wide.push_back(narrow ? ops::cast(value, at::kFloat) : value);
  }
  return wide;
}

}  // namespace

std::vector<DTensor> scaled(const std::vector<DTensor>& values, const ScalarOnDevices& factors) {
  return map_lists(
      widened(values),
      [&](const at::Tensor& block) {
        const double factor = factors.at(block.device()).item<double>();
        return factor == 1 ? block : block.mul(factor);
      },
      [&](const std::vector<at::Tensor>& list) {
        return at::_foreach_mul(list, factors.at(list[0].device()).to(list[0].scalar_type()));
      });
}

std::vector<DTensor> scaled(const std::vector<DTensor>& values, double factor) {
  if (factor == 1) return values;
  return map_lists(
      widened(values), [factor](const at::Tensor& block) { return block.mul(factor); },
      [factor](const std::vector<at::Tensor>& list) { return at::_foreach_mul(list, factor); });
}

std::vector<DTensor> clip_gradients(const std::vector<DTensor>& narrow,
                                    const BaseOptions& options) {
  const std::vector<DTensor> gradients = widened(narrow);
  const double bound = options.clipnorm.value_or(0);
  const double global = options.global_clipnorm.value_or(0);
  const double value = options.clipvalue.value_or(0);
  if (value > 0) {
    return map_lists(
        gradients, [value](const at::Tensor& block) { return block.clamp(-value, value); },
        [value](const std::vector<at::Tensor>& list) {
          const std::vector<at::Tensor> clipped = at::_foreach_clamp_min(list, -value);
          at::_foreach_clamp_max_(clipped, value);
          return clipped;
        });
  }
  if (bound > 0) return clip_each(gradients, bound);
  if (global > 0) return clip_together(gradients, global);
  return gradients;
}

}  // namespace tessera::detail
