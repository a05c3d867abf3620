#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/base/random.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// Cuts a whole tensor, the same on every process, into the shards that this process holds
/// (Keras' distribute_tensor). Copies; an rvalue whose memory nobody else holds is taken over and
/// its shards are views. Throws LayoutError when the layout's rank is not the tensor's.
DTensor pack(const at::Tensor& whole, const Layout& layout);
DTensor pack(at::Tensor&& whole, const Layout& layout);

/// The tensor of `rows` along axis 0 of which this process has the rows `have` only, those of its
/// shards among them; memory is taken over as by pack. Throws LayoutError as pack, ShapeError for
/// another number of rows, or where shards hold others.
DTensor pack_rows(at::Tensor&& part, Interval have, int64_t rows, const Layout& layout);

/// Joins one tensor per local device, in mesh order, into a DTensor (tf.experimental.dtensor.pack).
/// Replicas must agree; the first device's is taken. `shape` is the global shape; without it all
/// shards must be of one size. Throws ShapeError when a shard's shape is not its interval's,
/// ConfigError when dtypes differ.
DTensor pack(const std::vector<at::Tensor>& per_device, const Layout& layout,
             std::optional<Shape> shape = std::nullopt);

/// One tensor per local device, in mesh order (tf.experimental.dtensor.unpack); views.
std::vector<at::Tensor> unpack(const DTensor& value);

/// The value on another mesh. From a host tensor: as pack. Between meshes the value passes through
/// a whole copy. Collective on both meshes.
DTensor copy_to_mesh(const at::Tensor& value, const Layout& layout);
namespace detail {
DTensor copy_to_mesh_value(const DTensor& value, const Layout& layout);
}  // namespace detail

/// The layout a user sees: a pending reduction counts as done.
inline Layout fetch_layout(const DTensor& value) { return value.layout().resolved(); }

/// The mesh that values made without a layout are replicated over, while alive
/// (tf.experimental.dtensor.default_mesh).
class DefaultMeshScope {
 public:
  explicit DefaultMeshScope(const Mesh& mesh);

 private:
  detail::ScopedValue<Mesh> mesh_;
  detail::ScopedValue<Layout> layout_;  ///< none: it is of the mesh before
};
/// The innermost scope's mesh, else a mesh of one virtual CPU.
Mesh default_mesh();

namespace detail {

/// The layout that values of its rank are made in, while alive; what call_with_layout sets.
class DefaultLayoutScope {
 public:
  explicit DefaultLayoutScope(const Layout& layout);

 private:
  ScopedValue<Layout> layout_;
};
/// The layout in force for new values of a rank.
Layout default_layout(int64_t rank);

}  // namespace detail

/// Brings the result of a creating function to a layout; what the function makes of that rank is
/// made in its shards at once (tf.experimental.dtensor.call_with_layout).
template <class Function, class... Args>
DTensor call_with_layout(Function&& function, const Layout& layout, Args&&... args);

/// A tensor of one value. Without a layout: default_layout(rank).
DTensor filled(const Shape& shape, double value, at::ScalarType dtype, const Layout& layout);
DTensor filled(const Shape& shape, double value, at::ScalarType dtype = at::kFloat);
DTensor zeros(const Shape& shape, at::ScalarType dtype = at::kFloat);
DTensor ones(const Shape& shape, at::ScalarType dtype = at::kFloat);
/// A replicated number, for what changes from step to step.
DTensor scalar(double value, const Mesh& mesh, at::ScalarType dtype = at::kFloat);

/// tf.random.stateless_uniform, _normal, _truncated_normal: the same numbers as TensorFlow's for
/// the seed pair, whatever the layout: a shard is the slice of the whole draw. float32, or float64
/// widened from it.
DTensor stateless_uniform(const Shape& shape, Seed seed, double minval = 0, double maxval = 1,
                          at::ScalarType dtype = at::kFloat);
DTensor stateless_normal(const Shape& shape, Seed seed, double mean = 0, double stddev = 1,
                         at::ScalarType dtype = at::kFloat);
DTensor stateless_truncated_normal(const Shape& shape, Seed seed, double mean = 0,
                                   double stddev = 1, at::ScalarType dtype = at::kFloat);

namespace detail {
DTensor relayout_value(const DTensor& value, const Layout& layout);
}  // namespace detail

/// Calls the function with `layout` as the default of what it makes, and brings its value there.
template <class Function, class... Args>
DTensor call_with_layout(Function&& function, const Layout& layout, Args&&... args) {
  const detail::DefaultLayoutScope scope(layout);
  return detail::relayout_value(std::forward<Function>(function)(std::forward<Args>(args)...),
                                layout);
}

}  // namespace tessera
