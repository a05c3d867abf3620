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
class WeightPlacement;
Mesh with_weight_placement(const Mesh&, std::shared_ptr<const WeightPlacement>);
const WeightPlacement* weight_placement_of(const Mesh&);
}  // namespace detail

/// Names and sizes of a mesh's dimensions, major first: {{"batch", 4}, {"model", 2}}.
using MeshDims = std::vector<std::pair<std::string, int64_t>>;

namespace detail {

/// A set of mesh dimensions, one bit each, by position.
using DimMask = uint32_t;

}  // namespace detail

/// Devices arranged on a grid with named dimensions (tf.experimental.dtensor.Mesh). Global device
/// ids count row-major, last dimension fastest. A handle: copies share one immutable mesh, and two
/// meshes are equal when dimensions, devices and the local part are, and what carries their
/// collectives and places their weights is the same.
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
  /// Position of a dimension, -1 if there is none of that name.
  int find(const std::string& dim) const;
  /// Position of a dimension. Throws MeshError naming the nearest one.
  int index(const std::string& dim) const;
  /// Product of the sizes of the dimensions in `dims`.
  int64_t size_of(detail::DimMask dims) const;
  /// "batch" or "batch,model": the names of the dimensions in `dims`.
  std::string names(detail::DimMask dims) const;

  /// Coordinates of a global device id, and back.
  std::vector<int64_t> coordinates(int64_t id) const;
  int64_t id(const std::vector<int64_t>& coordinates) const;

  /// Global ids of this process's devices, ascending; the device behind each.
  const std::vector<int64_t>& local_ids() const { return state().local_ids; }
  const std::vector<Device>& local_devices() const { return state().local_devices; }
  bool is_local() const { return static_cast<int64_t>(local_ids().size()) == size(); }
  /// Range of coordinates that this process holds along each dimension. Its devices fill the box of
  /// these ranges.
  const std::vector<Interval>& local_box() const { return state().local_box; }

  /// The engine that carries this mesh's collectives; null for one process with all devices.
  const std::shared_ptr<detail::Communicator>& communicator() const { return state().communicator; }

  /// The mesh of the named dimensions through this process's first device; other dimensions are
  /// fixed at its coordinates. Throws MeshError for a name the mesh lacks.
  Mesh sub_mesh(const std::vector<std::string>& dims) const;

  /// "name|batch=4,model=2|0,1,…,7|0,…,7|cpu:0,…": dimensions, global ids, local ids, devices.
  std::string to_string() const;
  /// "batch=4, model=2", as error texts name a mesh.
  std::string describe() const;
  /// The mesh that to_string() wrote; no communicator. Throws MeshError on any other text.
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
    /// Null: weights rest here.
    std::shared_ptr<const detail::WeightPlacement> weight_placement;
    size_t hash = 0;
  };
  explicit Mesh(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  static Mesh make(State state);

  const State& state() const {
    return detail::handle_state(state_, "Mesh", "make it with create_mesh()");
  }

  std::shared_ptr<const State> state_;

  friend Mesh create_mesh(const MeshDims&, const std::vector<Device>&, const std::string&);
  friend Mesh create_mesh_part(const MeshDims&, const std::vector<int64_t>&,
                               const std::vector<Device>&, std::shared_ptr<detail::Communicator>,
                               const std::string&);
  friend Mesh detail::with_weight_placement(const Mesh&,
                                            std::shared_ptr<const detail::WeightPlacement>);
  friend const detail::WeightPlacement* detail::weight_placement_of(const Mesh&);
};

/// A mesh over all given devices, all in this process. Without devices: virtual CPUs, as many as
/// the dimensions ask for; one size may be -1 and is found from the devices.
/// Throws MeshError when names repeat, sizes are below 1 or do not multiply to the device count.
Mesh create_mesh(const MeshDims& dims, const std::vector<Device>& devices = {},
                 const std::string& name = "");

/// A mesh of which this process holds the devices with global ids `local_ids`, possibly none;
/// `communicator` reaches the others. Throws MeshError unless the local ids fill a box of the grid.
Mesh create_mesh_part(const MeshDims& dims, const std::vector<int64_t>& local_ids,
                      const std::vector<Device>& local_devices,
                      std::shared_ptr<detail::Communicator> communicator,
                      const std::string& name = "");

/// Dimensions from "batch=4,model=2". Throws MeshError saying what is wrong.
MeshDims parse_mesh_dims(const std::string& text);

/// "batch=4,model=2".
std::string to_string(const MeshDims& dims);

}  // namespace tessera
