#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// A part of a tensor that lies in one piece: a shard, or neighbours that share memory.
struct Tile {
  std::vector<Interval> intervals;  ///< global, per axis
  std::vector<int> ranks;           ///< processes that hold the shard, ascending
  int block = -1;                   ///< position in Sharding::blocks; -1 if not held here
};

/// The distinct parts of a tensor that are not empty. Together they are the tensor, once, and form
/// a grid; every process gets the same list but for `block`.
std::vector<Tile> tiles_of(const Sharding& sharding);

/// A tile's first element and the one behind its last, per axis.
Shape tile_begin(const std::vector<Interval>& intervals);
Shape tile_end(const std::vector<Interval>& intervals);
Shape tile_shape(const std::vector<Interval>& intervals);

}  // namespace tessera::detail
