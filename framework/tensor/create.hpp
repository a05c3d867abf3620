#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <tessera/framework/base/internal/scoped_value.hpp>
#include <tessera/framework/base/random.hpp>
#include <tessera/framework/tensor/dtensor.hpp>

namespace tessera {

/// Shards a full tensor, equal on every process, and keeps this process's shards (Keras'
/// distribute_tensor). Copies; but takes over an rvalue whose memory nobody else holds, and its
/// shards are views. Throws LayoutError when the layout's rank is not the tensor's.
DTensor pack(const at::Tensor& tensor, const Layout& layout);
DTensor pack(at::Tensor&& tensor, const Layout& layout);
/// Replicates a tensor on default_mesh(); copies or takes over in the same way.
DTensor pack(const at::Tensor& tensor);
DTensor pack(at::Tensor&& tensor);

/// Shards a tensor of `rows` rows along axis 0 of which this process has only the rows
/// `local_rows`; these must cover its shards. Takes over memory like pack. Throws LayoutError like
/// pack, ShapeError if `tensor` does not have one row for each of `local_rows`, or if its shards
/// need other rows.
DTensor pack_rows(at::Tensor&& tensor, Interval local_rows, int64_t rows, const Layout& layout);

/// Joins one tensor per local device, in mesh order, into a DTensor (tf.experimental.dtensor.pack).
/// Replicas must agree; the first device's is taken. `shape` is the global shape; without it all
/// shards must be of one size. Throws ShapeError when a shard's shape is not its interval's,
/// ConfigError when dtypes differ.
DTensor pack(const std::vector<at::Tensor>& per_device, const Layout& layout,
             std::optional<Shape> shape = std::nullopt);

/// Returns one tensor per local device, in mesh order (tf.experimental.dtensor.unpack); views.
std::vector<at::Tensor> unpack(const DTensor& value);

/// Copies the value to another mesh. A host tensor: same as pack. Between views of one mesh each
/// device gets its shard of the nearest devices that have it. Collective on both meshes.
DTensor copy_to_mesh(const at::Tensor& value, const Layout& layout);
namespace detail {
/// Throws ConfigError beginning with `where` for a tensor of complex numbers, which would lose
/// their imaginary parts.
void check_real(const at::Tensor& tensor, const std::string& where);
DTensor copy_to_mesh_value(const DTensor& value, const Layout& layout);
}  // namespace detail

/// Returns the layout that a user sees: a partial sum counts as resolved.
inline Layout fetch_layout(const DTensor& value) { return value.layout().resolved(); }

/// The mesh that values made without a layout are replicated over, while alive
/// (tf.experimental.dtensor.default_mesh).
class DefaultMeshScope {
 public:
  explicit DefaultMeshScope(const Mesh& mesh);

 private:
  detail::ScopedValue<Mesh> mesh_;
  detail::ScopedValue<Layout> layout_;  ///< resets the default layout, which is on the former mesh
};
/// Returns the innermost scope's mesh; outside any scope, a mesh of one virtual CPU. A layer's call
/// is a scope of its first input's mesh, and a step of fit(), evaluate() or predict() is one of the
/// model's mesh.
Mesh default_mesh();

namespace detail {

/// Sets the layout of new values of the same rank while alive; call_with_layout uses it.
class DefaultLayoutScope {
 public:
  explicit DefaultLayoutScope(const Layout& layout);

 private:
  ScopedValue<Layout> layout_;
};
/// Returns the layout of new values of a rank.
Layout default_layout(int64_t rank);

}  // namespace detail

/// Calls a function that creates a tensor and reshards its result to `layout`; values of that rank
/// are created sharded in the first place (tf.experimental.dtensor.call_with_layout).
template <class Function, class... Args>
DTensor call_with_layout(Function&& function, const Layout& layout, Args&&... args);

/// Returns a tensor filled with one value. Without a layout: default_layout(rank).
DTensor filled(const Shape& shape, double value, at::ScalarType dtype, const Layout& layout);
DTensor filled(const Shape& shape, double value, at::ScalarType dtype = at::kFloat);
DTensor zeros(const Shape& shape, at::ScalarType dtype = at::kFloat);
DTensor ones(const Shape& shape, at::ScalarType dtype = at::kFloat);
/// Returns a replicated scalar, for a number that changes from step to step.
DTensor scalar(double value, const Mesh& mesh, at::ScalarType dtype = at::kFloat);

/// tf.random.stateless_uniform, _normal, _truncated_normal: TensorFlow's numbers for the seed pair,
/// whatever the layout: a shard is a slice of the global draw. float32, or float64 widened from it.
DTensor stateless_uniform(const Shape& shape, Seed seed, double minval = 0, double maxval = 1,
                          at::ScalarType dtype = at::kFloat);
DTensor stateless_normal(const Shape& shape, Seed seed, double mean = 0, double stddev = 1,
                         at::ScalarType dtype = at::kFloat);
DTensor stateless_truncated_normal(const Shape& shape, Seed seed, double mean = 0,
                                   double stddev = 1, at::ScalarType dtype = at::kFloat);

namespace detail {

/// Moves a value to another layout on its mesh (tf.experimental.dtensor.relayout). Collective; free
/// where it only slices. Throws MeshError for a layout on another mesh, LayoutError for one of
/// another rank. Not recorded on a tape: ops::relayout is.
DTensor relayout_value(const DTensor& value, const Layout& layout);
/// relayout_value() of several values to the layout of each. Those that only need an all-gather
/// over the same mesh dimensions, in the same dtype, are gathered in one exchange.
std::vector<DTensor> relayout_values(const std::vector<DTensor>& values,
                                     const std::vector<Layout>& layouts);

}  // namespace detail

/// Calls the function under a DefaultLayoutScope and reshards its result to `layout`.
template <class Function, class... Args>
DTensor call_with_layout(Function&& function, const Layout& layout, Args&&... args) {
  const detail::DefaultLayoutScope scope(layout);
  return detail::relayout_value(std::forward<Function>(function)(std::forward<Args>(args)...),
                                layout);
}

}  // namespace tessera
