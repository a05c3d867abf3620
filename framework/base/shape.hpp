#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

/// Global extents of a tensor, one per axis (empty: a scalar).
using Shape = std::vector<int64_t>;

/// Half-open range [lo, hi) of global indices along one axis.
struct Interval {
  int64_t lo = 0;
  int64_t hi = 0;
  int64_t size() const { return hi - lo; }
  bool empty() const { return hi <= lo; }
  bool operator==(const Interval&) const = default;
};

/// Formats a shape like a Python tuple: "(2, 3)", "(5,)", "()".
std::string to_string(const Shape& shape);

namespace detail {

// Shape is a standard type: ADL would not find its to_string() where detail has overloads.
using tessera::to_string;

/// Returns the intersection of two intervals; empty (lo == hi) if they are disjoint.
Interval intersect(Interval a, Interval b);

/// Returns the number of elements; 1 for a scalar.
int64_t numel(const Shape& shape);

/// Returns shard i of k along an axis of extent n: [floor(i*n/k), floor((i+1)*n/k)). Sizes differ
/// by at most one; with n < k some shards are empty. Always computed from the global extent.
Interval shard_interval(int64_t n, int64_t k, int64_t i);

/// Returns the axis in [0, rank) for a possibly negative one. Throws ShapeError naming `where`.
int64_t normalize_axis(int64_t axis, int64_t rank, const std::string& where);

}  // namespace detail

}  // namespace tessera
