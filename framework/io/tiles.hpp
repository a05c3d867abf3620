#pragma once

#include <vector>

#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// A part of a tensor that lies in one piece: a shard, or neighbours that share memory.
struct Tile {
  std::vector<Interval> intervals;  ///< global, per axis
  int rank = 0;                     ///< of the process with the lowest device that holds it
  int block = -1;                   ///< its position in Sharding::blocks; -1 if not held here
};

/// The distinct parts of a tensor that are not empty. Together they are the tensor, once, and form
/// a grid; every process gets the same list but for `block`.
std::vector<Tile> tiles_of(const Sharding& sharding);

/// The values of the tiles on rank 0, contiguous, in the host's memory; on other ranks undefined
/// tensors. Memory may be shared with the value. Collective: each tile goes from its rank to
/// rank 0.
std::vector<at::Tensor> collect_tiles(const DTensor& value, const std::vector<Tile>& tiles);

/// A tile's first element and the one behind its last, per axis.
Shape tile_begin(const std::vector<Interval>& intervals);
Shape tile_end(const std::vector<Interval>& intervals);
Shape tile_shape(const std::vector<Interval>& intervals);

}  // namespace tessera
