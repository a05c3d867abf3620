#include "apps/common/formula.hpp"

#include <cmath>
#include <vector>

#include <ATen/ATen.h>

namespace tessera::app {

namespace {

/// Returns a 32-bit hash of each index, in int64.
at::Tensor hashes(const Shape& shape, int64_t seed) {
  constexpr int64_t mask = 0xffffffff, golden_ratio = 0x9e3779b1, odd = 0x45d9f3b;
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  at::Tensor hash = at::arange(count, at::kLong).add(seed * golden_ratio).bitwise_and(mask);
  for (int round = 0; round < 2; ++round) {
    hash = hash.bitwise_xor(hash.bitwise_right_shift(16)).mul(odd).bitwise_and(mask);
  }
  return hash.bitwise_xor(hash.bitwise_right_shift(16)).reshape(shape);
}

/// Returns whether each index of an axis is in the interval of each row: (rows, size).
at::Tensor in_intervals(const at::Tensor& first, const at::Tensor& extent, int64_t size,
                        int64_t axis) {
  const at::Tensor index = at::arange(size, at::kLong), begin = first.narrow(1, axis, 1);
  return index.ge(begin).logical_and(index.lt(begin + extent.narrow(1, axis, 1)));
}

}  // namespace

at::Tensor hashed_numbers(const Shape& shape, int64_t seed) {
  // 24 bits are exact in float32.
  return hashes(shape, seed).bitwise_right_shift(8).to(at::kFloat).mul(1.0 / (1 << 24));
}

at::Tensor hashed_integers(const Shape& shape, int64_t seed, int64_t count) {
  return hashes(shape, seed).remainder(count);
}

void set_hashed_weights(const ModelHandle& model) {
  std::vector<at::Tensor> weights = model.get_weights();
  for (size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor& weight = weights[i];
    if (weight.dim() < 2) continue;
    const int64_t out = weight.size(-1), in = weight.numel() / out;
    const double limit = std::sqrt(6.0 / static_cast<double>(in + out));
    weights[i] = hashed_numbers(weight.sizes().vec(), static_cast<int64_t>(i) + 1)
                     .mul(2)
                     .sub(1)
                     .mul(limit)
                     .to(weight.scalar_type());
  }
  model.set_weights(weights);
}

at::Tensor hashed_digits(const at::Tensor& classes, int64_t seed) {
  const at::Tensor squares = hashed_numbers({10, 7, 7}, 10).gt(0.5).to(at::kFloat);
  const at::Tensor patterns = squares.repeat_interleave(4, 1).repeat_interleave(4, 2).unsqueeze(-1);
  const at::Tensor noise = hashed_numbers({classes.size(0), 28, 28, 1}, seed);
  return patterns.index_select(0, classes).mul(0.25).add(noise.mul(0.75));
}

at::Tensor hashed_rectangles(int64_t rows, int64_t size, int64_t seed) {
  const at::Tensor first = hashed_integers({rows, 2}, seed, size / 2);
  const at::Tensor extent = hashed_integers({rows, 2}, seed + 1, size / 4) + size / 4;
  const at::Tensor tall = in_intervals(first, extent, size, 0),
                   wide = in_intervals(first, extent, size, 1);
  return tall.unsqueeze(2).logical_and(wide.unsqueeze(1)).unsqueeze(3).to(at::kFloat);
}

}  // namespace tessera::app
