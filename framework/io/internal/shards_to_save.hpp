#pragma once

#include <vector>

#include <tessera/framework/nn/variable.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera::detail {

/// The mesh that variables lie on; the default one of none.
Mesh mesh_of(const std::vector<Variable>& variables);

/// A part of a tensor that lies in one piece: a shard, or neighbours that share memory.
struct Tile {
  std::vector<Interval> intervals;  ///< global, per axis
  std::vector<int> ranks;           ///< processes that hold the shard, ascending
  int block = -1;                   ///< position in Sharding::blocks; -1 if not held here
};

/// The distinct parts of a tensor that are not empty. Together they are the tensor, once, and form
/// a grid; every process gets the same list but for `block`.
std::vector<Tile> tiles_of(const Sharding& sharding);

/// Who writes what several processes hold: the one that has least to write so far. The same on
/// every process that asks the same.
class Writers {
 public:
  Writers() = default;
  /// The processes of a mesh.
  explicit Writers(const Mesh& mesh);
  size_t size() const { return bytes_.size(); }
  /// The one of the processes `ranks` that is to write so many bytes more.
  int choose(const std::vector<int>& ranks, uint64_t bytes);

 private:
  std::vector<uint64_t> bytes_;  ///< of each process
};

/// A tile's first element and the one behind its last, per axis.
Shape tile_begin(const std::vector<Interval>& intervals);
Shape tile_end(const std::vector<Interval>& intervals);
Shape tile_shape(const std::vector<Interval>& intervals);

}  // namespace tessera::detail
