#include <tessera/framework/mesh/internal/hosting.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <tessera/framework/base/error.hpp>

namespace tessera::detail {
namespace {

using Coordinates = std::vector<int64_t>;

/// Returns the mesh without devices, which checks the dimensions.
Mesh empty_mesh(const MeshDims& dims) { return create_mesh_part(dims, {}, {}, nullptr); }

/// Returns, for each coordinate of each dimension, the number of the interval that it is in, as the
/// owners of the devices on that axis of the grid have it.
std::vector<Coordinates> intervals_of(const Mesh& mesh, const std::vector<int>& owners) {
  std::vector<Coordinates> intervals;
  int64_t stride = mesh.size();
  for (const auto& dim : mesh.dims()) {
    stride /= dim.second;
    Coordinates numbers = {0};
    for (int64_t i = 1; i < dim.second; ++i) {
      const auto id = static_cast<size_t>(i * stride);
      const bool begins = owners[id] != owners[id - static_cast<size_t>(stride)];
      numbers.push_back(numbers.back() + (begins ? 1 : 0));
    }
    intervals.push_back(std::move(numbers));
  }
  return intervals;
}

/// Returns into how many intervals each dimension is split between the processes, as many of the
/// first ones as possible; nothing if no grid has that many boxes.
std::optional<std::vector<int64_t>> grid_of(const MeshDims& dims, int64_t processes, size_t d = 0) {
  if (d == dims.size()) {
    return processes == 1 ? std::optional(std::vector<int64_t>()) : std::nullopt;
  }
  for (int64_t parts = std::min(dims[d].second, processes); parts > 0; --parts) {
    if (processes % parts != 0) continue;
    auto rest = grid_of(dims, processes / parts, d + 1);
    if (!rest) continue;
    rest->insert(rest->begin(), parts);
    return rest;
  }
  return std::nullopt;
}

/// Returns "4 or 6": the nearest numbers of processes that fit.
std::string nearest_that_fit(const Mesh& mesh, int processes) {
  const MeshDims& dims = mesh.dims();
  int less = processes - 1;
  while (less > 1 && !grid_of(dims, less)) --less;
  std::string text = str(less);
  for (int64_t more = processes + 1; more <= mesh.size(); ++more) {
    if (grid_of(dims, more)) return text + str(" or ", more);
  }
  return text;
}

}  // namespace

Hosting::Hosting(const MeshDims& dims, std::vector<int> owners) : owners_(std::move(owners)) {
  const Mesh mesh = empty_mesh(dims);
  const auto fail = [&](const std::string& received) {
    throw MeshError("mesh", "the devices of each process are one box of a grid of the mesh",
                    str("mesh ", mesh.describe(), ", ", received),
                    "split each dimension into intervals, and give each process one box of them");
  };
  if (std::ssize(owners_) != mesh.size()) fail(str(owners_.size(), " owners"));
  const std::vector<Coordinates> intervals = intervals_of(mesh, owners_);
  std::map<Coordinates, int> rank_of_box;
  std::map<int, Coordinates> box_of_rank;
  for (size_t id = 0; id < owners_.size(); ++id) {
    Coordinates box = mesh.coordinates(static_cast<int64_t>(id));
    for (size_t d = 0; d < box.size(); ++d) box[d] = intervals[d][static_cast<size_t>(box[d])];
    const int rank = rank_of_box.try_emplace(box, owners_[id]).first->second;
    if (rank != owners_[id] || box_of_rank.try_emplace(rank, box).first->second != box) {
      fail(str("device ", id, " on rank ", owners_[id]));
    }
  }
  for (const Coordinates& numbers : intervals) {
    const auto extent = std::ssize(numbers), parts = numbers.back() + 1;
    for (int64_t i = 0; i < extent; ++i) {
      even_ = even_ && numbers[static_cast<size_t>(i)] == i * parts / extent;
    }
    even_ = even_ && extent % parts == 0;
  }
}

std::vector<int64_t> Hosting::devices_of(int rank) const {
  std::vector<int64_t> ids;
  for (size_t id = 0; id < owners_.size(); ++id) {
    if (owners_[id] == rank) ids.push_back(static_cast<int64_t>(id));
  }
  return ids;
}

std::shared_ptr<const Hosting> default_hosting(const MeshDims& dims, int processes) {
  const Mesh mesh = empty_mesh(dims);
  const auto parts = grid_of(dims, processes);
  if (!parts) {
    throw MeshError("mesh", "the devices of each process are one box of a grid of the mesh",
                    str(processes, " processes with mesh ", mesh.describe()),
                    str("start ", nearest_that_fit(mesh, processes),
                        " processes, or make one of its dimensions at least ", processes));
  }
  std::vector<int> owners;
  for (int64_t id = 0; id < mesh.size(); ++id) {
    const Coordinates at = mesh.coordinates(id);
    int64_t rank = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t extent = dims[d].second, count = (*parts)[d];
      // The i for which shard_interval(extent, count, i) has the coordinate.
      rank = rank * count + ((at[d] + 1) * count - 1) / extent;
    }
    owners.push_back(static_cast<int>(rank));
  }
  return std::make_shared<const Hosting>(dims, std::move(owners));
}

const Hosting* hosting_of(const Mesh& mesh) { return mesh.state_->hosting.get(); }

}  // namespace tessera::detail
