#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/framework/base/shape.hpp>

namespace tessera {

/// Seed of one random stream: the pair that TensorFlow's stateless functions take.
struct Seed {
  int64_t a = 0;
  int64_t b = 0;
  bool operator==(const Seed&) const = default;
};

namespace detail {

/// Returns a 64-bit hash (FNV-1a) that is identical on every machine and in every run.
uint64_t stable_hash(std::string_view text);

/// Derives a seed from `seed` and `data` (a layer path's hash, a step, an epoch): Philox of the
/// pair, keyed by `data`, so different seeds stay different.
Seed fold_in(Seed seed, uint64_t data);

/// Draws the words of tf.random.stateless_uniform(minval=None, maxval=None, dtype=uint32). Writes
/// the block `slice` (one interval per axis) of a draw of shape `global` to `out`, row-major and
/// contiguous. Values depend on global element indices, so every slice matches the full draw.
/// Throws ShapeError unless `slice` is inside `global`. All this holds for the draws below, too.
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

/// Pseudo-random permutation of [0, n) whose entries are computed on demand from 10 sqrt(n) numbers
/// that the constructor draws.
class Permutation {
 public:
  /// Throws ConfigError if n is negative.
  Permutation(int64_t n, Seed seed);

  /// Returns the image of i. Throws ShapeError unless 0 <= i < size().
  int64_t operator()(int64_t i) const;

  int64_t size() const { return n_; }

 private:
  uint64_t shuffled_once(uint64_t value) const;

  int64_t n_;
  uint64_t rows_ = 1;
  uint64_t columns_ = 1;
  /// Shifts of every Feistel round: `row_shifts_` moves along a column and is indexed by it,
  /// `column_shifts_` moves along a row and is indexed by it.
  std::vector<uint32_t> row_shifts_;
  std::vector<uint32_t> column_shifts_;
};

}  // namespace detail

}  // namespace tessera
