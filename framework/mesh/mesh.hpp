#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/handle_state.hpp>
#include <tessera/framework/base/shape.hpp>
#include <tessera/framework/mesh/device.hpp>

namespace tessera {

class Mesh;
namespace detail {
class Communicator;
class Hosting;
class WeightPlacement;
const Hosting* hosting_of(const Mesh&);
Mesh with_weight_placement(const Mesh&, std::shared_ptr<const WeightPlacement>);
const WeightPlacement* weight_placement_of(const Mesh&);
}  // namespace detail

/// Names and sizes of a mesh's dimensions, major first: {{"batch", 4}, {"model", 2}}.
using MeshDims = std::vector<std::pair<std::string, int64_t>>;

/// A set of mesh dimensions, one bit each, by position.
using DimMask = uint32_t;

/// Devices arranged on a grid with named dimensions (tf.experimental.dtensor.Mesh). Global device
/// ids are row-major, last dimension fastest. A handle: copies share one immutable mesh. Two meshes
/// are equal if their names, dimensions, local ids and devices are equal, the same processes hold
/// their devices, and they share a communicator and a weight placement; two views are, if they are
/// views of equal meshes at the same coordinates.
class Mesh {
 public:
  Mesh() = default;

  bool defined() const { return state_ != nullptr; }
  const std::string& name() const { return state().name; }
  const MeshDims& dims() const { return state().dims; }
  int rank() const { return static_cast<int>(state().dims.size()); }
  int64_t size() const { return state().size; }
  std::vector<std::string> dim_names() const;
  int64_t dim_size(int dim) const { return state().dims[static_cast<size_t>(dim)].second; }
  /// Returns the position of a dimension, or -1 if no dimension has that name.
  int find(const std::string& dim) const;
  /// Returns the position of a dimension. Throws MeshError naming the nearest one.
  int index(const std::string& dim) const;
  /// Returns the product of the sizes of the dimensions in `dims`.
  int64_t size_of(DimMask dims) const;
  /// "batch" or "batch,model": the names of the dimensions in `dims`.
  std::string names(DimMask dims) const;

  /// Returns the coordinates of a global device id; id() is the inverse.
  std::vector<int64_t> coordinates(int64_t id) const;
  int64_t id(const std::vector<int64_t>& coordinates) const;

  /// Global ids of this process's devices, ascending, and the device of each id.
  const std::vector<int64_t>& local_ids() const { return state().local_ids; }
  const std::vector<Device>& local_devices() const { return state().local_devices; }
  /// Whether this process holds all devices, those of the view if this is one.
  bool is_local() const { return static_cast<int64_t>(local_ids().size()) == state().devices; }
  /// The interval of coordinates that this process holds along each dimension. Its devices fill the
  /// box of these intervals.
  const std::vector<Interval>& local_box() const { return state().local_box; }

  /// Returns the part of this mesh at the given coordinates, such as {{"stage", 1}}: a mesh of the
  /// same dimensions and sizes, of which only these coordinates have devices. So shards, random
  /// numbers and denominators are those of the whole mesh, and only the processes that hold these
  /// devices take part in collectives. A dimension of size 1 fixes nothing. Throws MeshError for an
  /// unknown dimension, a coordinate out of range, and one that differs from this view's.
  Mesh view(const MeshDims& coordinates) const;
  /// Whether this is a view that lacks some devices of its root.
  bool is_view() const { return state().root != nullptr; }
  /// Returns the mesh that this is a view of; itself if it is no view.
  Mesh root() const { return is_view() ? Mesh(state().root) : *this; }
  /// The dimensions of which a view has one coordinate; none if this is no view.
  DimMask fixed_dims() const { return state().fixed; }
  /// The intervals of coordinates that have devices: one coordinate of a fixed dimension, all of
  /// any other.
  const std::vector<Interval>& box() const { return state().box; }

  /// The communicator of this mesh's collectives; null if this process holds all devices.
  const std::shared_ptr<detail::Communicator>& communicator() const { return state().communicator; }

  /// Returns the mesh of the named dimensions through this process's first device; all other
  /// dimensions are fixed at its coordinates. Throws MeshError for an unknown name.
  Mesh sub_mesh(const std::vector<std::string>& dims) const;

  /// "name|batch=4,model=2|0,1,…,7|0,…,7|cpu:0,…": dimensions, global ids, local ids, devices.
  std::string to_string() const;
  /// "batch=4, model=2", the form in error texts; of a view "stage=2, batch=4 at stage 1".
  std::string describe() const;
  /// Parses the text of to_string(), without a communicator. Throws MeshError on any other text.
  static Mesh from_string(const std::string& text);

  bool operator==(const Mesh& other) const;
  size_t hash() const { return state_ ? state().hash : 0; }

 private:
  struct State {
    std::string name;
    MeshDims dims;
    int64_t size = 1;
    std::vector<int64_t> local_ids;
    std::vector<Device> local_devices;
    std::vector<Interval> local_box;
    std::shared_ptr<detail::Communicator> communicator;
    /// Null: rank r of n holds the devices shard_interval(size, n, r).
    std::shared_ptr<const detail::Hosting> hosting;
    /// Null: weights are stored on this mesh.
    std::shared_ptr<const detail::WeightPlacement> weight_placement;
    size_t hash = 0;
    std::vector<Interval> box;          ///< the coordinates that have devices
    int64_t devices = 1;                ///< in `box`
    DimMask fixed = 0;                  ///< dimensions of which a view has one coordinate
    std::shared_ptr<const State> root;  ///< null: no view
  };
  explicit Mesh(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  static Mesh make(State state);
  /// Returns the sub-mesh of the root through a device.
  Mesh sub_mesh_through(int64_t device, const std::vector<std::string>& names) const;

  const State& state() const {
    return detail::handle_state(state_, "Mesh", "make it with create_mesh()");
  }

  std::shared_ptr<const State> state_;

  friend Mesh create_mesh(const MeshDims&, const std::vector<Device>&, const std::string&);
  friend Mesh create_mesh_part(const MeshDims&, const std::vector<int64_t>&,
                               const std::vector<Device>&, std::shared_ptr<detail::Communicator>,
                               const std::string&, std::shared_ptr<const detail::Hosting>);
  friend const detail::Hosting* detail::hosting_of(const Mesh&);
  friend Mesh detail::with_weight_placement(const Mesh&,
                                            std::shared_ptr<const detail::WeightPlacement>);
  friend const detail::WeightPlacement* detail::weight_placement_of(const Mesh&);
};

/// Creates a mesh over `devices`, all in this process (default: as many virtual CPUs as `dims`
/// needs). One size may be -1 and is inferred from the number of devices.
/// Throws MeshError when names repeat, sizes are below 1 or do not multiply to the device count.
Mesh create_mesh(const MeshDims& dims, const std::vector<Device>& devices = {},
                 const std::string& name = "");

/// Creates a mesh of which this process holds the devices with global ids `local_ids`, possibly
/// none; `communicator` reaches the others, and `hosting` says which of them holds which device
/// (default: rank r of n holds the run of ids shard_interval(size, n, r)). Throws MeshError unless
/// the local ids fill a box of the grid, and are those of one process of the hosting.
Mesh create_mesh_part(const MeshDims& dims, const std::vector<int64_t>& local_ids,
                      const std::vector<Device>& local_devices,
                      std::shared_ptr<detail::Communicator> communicator,
                      const std::string& name = "",
                      std::shared_ptr<const detail::Hosting> hosting = nullptr);

/// Parses dimensions such as "batch=4,model=2". Throws MeshError on invalid text.
MeshDims parse_mesh_dims(const std::string& text);

/// "batch=4,model=2".
std::string to_string(const MeshDims& dims);

}  // namespace tessera
