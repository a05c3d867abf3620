#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera {

/// Seed of one stream of random numbers: the pair TensorFlow's stateless functions take.
struct Seed {
  int64_t a = 0;
  int64_t b = 0;
  bool operator==(const Seed&) const = default;
};

namespace detail {

/// 64-bit hash of a text, the same on every machine and in every run (FNV-1a).
uint64_t stable_hash(std::string_view text);

/// Seed of the stream that `data` (a layer path's hash, a step, an epoch) selects from `seed`:
/// Philox of the pair keyed by `data`, so different seeds stay different.
Seed fold_in(Seed seed, uint64_t data);

/// Random words of tf.random.stateless_uniform(minval=None, maxval=None, dtype=uint32). Writes the
/// part `slice` (one interval per axis) of the draw of shape `global` to `out`, row-major and
/// contiguous; element numbers are global, so that any slice is the slice of the whole draw.
/// Throws ShapeError unless `slice` lies inside `global`. The same holds for the draws below.
void stateless_bits(Seed seed, const Shape& global, std::span<const Interval> slice, uint32_t* out);

/// tf.random.stateless_uniform: u * (hi - lo) + lo with u in [0, 1).
void stateless_uniform(Seed seed, const Shape& global, std::span<const Interval> slice, float lo,
                       float hi, float* out);

/// tf.random.stateless_normal: z * stddev + mean, z by Box-Muller.
void stateless_normal(Seed seed, const Shape& global, std::span<const Interval> slice, float mean,
                      float stddev, float* out);

/// tf.random.stateless_truncated_normal: z * stddev + mean, z normal with |z| < 2.
void stateless_truncated_normal(Seed seed, const Shape& global, std::span<const Interval> slice,
                                float mean, float stddev, float* out);

/// A pseudo-random bijection of [0, n) onto itself, computed entry by entry of 10 sqrt(n) numbers
/// that are drawn at first.
class Permutation {
 public:
  /// Throws ConfigError if n is negative.
  Permutation(int64_t n, Seed seed);

  /// Image of i; throws ShapeError unless 0 <= i < size().
  int64_t operator()(int64_t i) const;

  int64_t size() const { return n_; }

 private:
  uint64_t shuffled_once(uint64_t value) const;

  int64_t n_;
  uint64_t rows_ = 1;
  uint64_t columns_ = 1;
  /// How far each round moves a cell: rounds within its column by the number of the column, those
  /// within its row by the number of the row.
  std::vector<uint32_t> row_shifts_;
  std::vector<uint32_t> column_shifts_;
};

}  // namespace detail

}  // namespace tessera
