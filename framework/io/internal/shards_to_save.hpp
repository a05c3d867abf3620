#pragma once

#include <vector>

#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// Returns the mesh of the variables, which views of it may hold; the default mesh if there are
/// none.
Mesh mesh_of(const std::vector<Variable>& variables);

/// A distinct block of a tensor: a shard, or adjacent shards that share memory.
struct Tile {
  std::vector<Interval> intervals;  ///< global, per axis
  std::vector<int> ranks;           ///< processes that hold the shard, ascending
  int block = -1;                   ///< position in Sharding::blocks; -1 if not held here
};

/// Returns the distinct, non-empty blocks of a tensor. They cover it once and form a grid. Every
/// process gets the same list except for `block`.
std::vector<Tile> tiles_of(const Sharding& sharding);

/// Chooses which process writes a block that several hold: the one with the fewest bytes to write
/// so far. Deterministic across processes for the same calls.
class Writers {
 public:
  Writers() = default;
  /// Starts with nothing to write on each process of a mesh.
  explicit Writers(const Mesh& mesh);
  size_t size() const { return bytes_.size(); }
  /// Chooses one of `ranks` to write `bytes` more bytes.
  int choose(const std::vector<int>& ranks, uint64_t bytes);

 private:
  std::vector<uint64_t> bytes_;  ///< bytes to write, by rank
};

/// Returns a tile's begin, end (exclusive) and extents, per axis.
Shape tile_begin(const std::vector<Interval>& intervals);
Shape tile_end(const std::vector<Interval>& intervals);
Shape tile_shape(const std::vector<Interval>& intervals);

}  // namespace tessera::detail
