#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tessera/framework/mesh/mesh.hpp>

namespace tessera::detail {

/// Which process holds each device of a mesh. Each mesh dimension is split into intervals, and a
/// process holds one box of the grid that they form. So a collective along some dimensions is
/// between the same processes at all coordinates of the others that a process holds.
class Hosting {
 public:
  /// `owners` are the ranks that hold the devices, by global id. Throws MeshError unless the
  /// devices of each rank are one box of such a grid.
  Hosting(const MeshDims& dims, std::vector<int> owners);

  /// Returns the rank that holds a device.
  int owner(int64_t device) const { return owners_[static_cast<size_t>(device)]; }
  const std::vector<int>& owners() const { return owners_; }
  /// Returns the global ids of a rank's devices, ascending.
  std::vector<int64_t> devices_of(int rank) const;
  /// Whether all boxes have the same size.
  bool is_even() const { return even_; }

 private:
  std::vector<int> owners_;
  bool even_ = true;
};

/// Returns the hosting of a mesh by ranks 0 to processes - 1, in row-major order of their boxes. As
/// many processes as possible share the first dimension, its rows split as evenly as possible:
/// shard_interval(rows, n, i); if there are more processes than rows, the others split the
/// dimensions after it. Where runs of neighbouring ids, shard_interval(size, processes, rank), form
/// a grid, these are the boxes. Throws MeshError, naming numbers that fit, for a number of
/// processes that is no product of at most as many parts of each dimension as it has coordinates.
std::shared_ptr<const Hosting> default_hosting(const MeshDims& dims, int processes);

/// Returns the hosting of a mesh; null if it was made without one.
const Hosting* hosting_of(const Mesh& mesh);

}  // namespace tessera::detail
