#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// Global extents of a tensor, one per axis; empty for a scalar.
using Shape = std::vector<int64_t>;

/// Half-open range [lo, hi) of global indices along one axis.
struct Interval {
  int64_t lo = 0;
  int64_t hi = 0;
  int64_t size() const { return hi - lo; }
  bool empty() const { return hi <= lo; }
  bool operator==(const Interval&) const = default;
};

/// "(2, 3)"; "(5,)" for one axis and "()" for a scalar, as Python prints tuples.
std::string to_string(const Shape& shape);

namespace detail {

// A Shape is a standard type, so its text is not found by argument where detail has others.
using tessera::to_string;

/// The common part of two intervals; empty (lo == hi) where they do not meet.
Interval intersect(Interval a, Interval b);

/// Number of elements; 1 for a scalar.
int64_t numel(const Shape& shape);

/// Shard i of k along an axis of n: [floor(i*n/k), floor((i+1)*n/k)). Shards may differ by one and,
/// where n < k, be empty; always computed from the global extent.
Interval shard_interval(int64_t n, int64_t k, int64_t i);

/// Axis in [0, rank) from a possibly negative one. Throws ShapeError naming `where`.
int64_t normalize_axis(int64_t axis, int64_t rank, const std::string& where);

}  // namespace detail

}  // namespace tessera
