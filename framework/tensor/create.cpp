#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/dtype_name.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>
#include <tessera/framework/tensor/internal/tracer.hpp>
#include <tessera/framework/tensor/internal/transfer.hpp>

namespace tessera {

using namespace detail;

namespace {

Shape shape_of(const at::Tensor& tensor) { return tensor.sizes().vec(); }

/// Returns a block's slice of a tensor whose axis 0 begins at the global index `first`.
at::Tensor slice_for(const at::Tensor& tensor, int64_t first, const BlockInfo& block) {
  at::Tensor slice = tensor;
  for (size_t a = 0; a < block.intervals.size(); ++a) {
    const Interval want = block.intervals[a];
    if (want.size() == slice.size(int64_t(a))) continue;
    const int64_t begin = want.lo - (a == 0 && !want.empty() ? first : 0);
    slice = slice.narrow(int64_t(a), want.empty() ? 0 : begin, want.size());
  }
  return slice;
}

void check_tensor(const at::Tensor& tensor, const Layout& layout) {
  if (!tensor.defined()) {
    throw ShapeError("pack", "the tensor must be defined", "an undefined tensor", "");
  }
  check_real(tensor, "pack");
  if (!layout.defined() || tensor.dim() != layout.rank()) {
    throw LayoutError("pack", "a layout names every axis of its tensor",
                      "layout " + layout.describe() + " for shape " + to_string(shape_of(tensor)),
                      str("give it ", tensor.dim(), " entries"));
  }
}

/// Whether the tensor's memory may be taken over: not if it is shared, or not owned by an
/// allocator, such as a user's own buffer.
bool may_take_over(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1 &&
         tensor.storage().allocator() && tensor.is_non_overlapping_and_dense();
}

/// Notifies the tracer that a value is a constant of the step: it is the same in every step.
/// `numbers` returns all of it as a host tensor.
template <class Numbers>
DTensor trace_constant(DTensor value, const Numbers& numbers) {
  if (OpListener* const listener = tracer()) {
    listener->constant(value);
    if (listener->keeps_numbers()) listener->numbers(value, numbers());
  }
  return value;
}

/// Shards a tensor of global shape `shape`, of which `tensor` holds axis 0 from index `first` on.
DTensor shard_tensor(const at::Tensor& tensor, int64_t first, const Shape& shape,
                     const Layout& layout, bool copy) {
  const c10::InferenceMode inference;
  const ShardingPtr sharding = intern(shape, tensor.scalar_type(), layout);
  const bool per_device = block_policy() == BlockPolicy::per_device;
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    const DeviceMemory::For memory(block.devices.front());
    const at::Tensor slice = slice_for(tensor, first, block);
    const c10::Device device = block_device(sharding->mesh(), block);
    if (slice.device() != device) {
      blocks.push_back(slice.is_cpu() ? upload(slice, device, /*immutable=*/!copy)
                                      : moved_to(slice, device));
    } else {
      // A real device would not share memory with the host's tensor.
      blocks.push_back(copy || per_device ? slice.clone() : slice);
    }
  }
  return DTensor(sharding, std::move(blocks));
}

/// Returns a tensor with the memory of `tensor`, or undefined if it cannot be taken over.
at::Tensor taken_over(at::Tensor&& tensor) {
  if (!may_take_over(tensor)) return {};
  const c10::InferenceMode inference;
  // Views of a tensor made outside InferenceMode would keep it alive.
  const at::Tensor taken =
      at::empty({0}, tensor.options())
          .set_(tensor.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  tensor.reset();
  return taken;
}

void check_rows(const at::Tensor& tensor, Interval local_rows, int64_t rows, const Layout& layout) {
  check_tensor(tensor, layout);
  if (tensor.dim() == 0 || tensor.size(0) != local_rows.size()) {
    throw ShapeError("pack_rows",
                     str("axis 0 holds rows [", local_rows.lo, ", ", local_rows.hi, ")"),
                     "shape " + to_string(shape_of(tensor)), "pass one row for each");
  }
  const Mesh& mesh = layout.mesh();
  if (mesh.local_ids().empty()) return;
  const Interval want = axis_interval(layout, 0, rows, mesh.local_box());
  if (want.empty() || (local_rows.lo <= want.lo && want.hi <= local_rows.hi)) return;
  throw ShapeError(
      "pack_rows", str("this process's shards need rows [", want.lo, ", ", want.hi, ")"),
      str("rows [", local_rows.lo, ", ", local_rows.hi, ")"), "pass at least these rows");
}

Shape global_shape(const at::Tensor& shard, const Layout& layout) {
  Shape shape = shape_of(shard);
  for (size_t a = 0; a < shape.size(); ++a) shape[a] *= layout.num_shards(int64_t(a));
  return shape;
}

template <class Draw>
DTensor drawn(const Shape& shape, at::ScalarType dtype, const Draw& draw) {
  if (dtype != at::kFloat && dtype != at::kDouble) {
    throw ConfigError("stateless random", "numbers are drawn as float32 or float64",
                      dtype_name(dtype), "draw float32 and cast");
  }
  const c10::InferenceMode inference;
  const Layout layout = default_layout(static_cast<int64_t>(shape.size()));
  const ShardingPtr sharding = intern(shape, dtype, layout);
  Blocks blocks(sharding->blocks.size());
  run_blocks(int64_t(blocks.size()), numel(shape) >= inline_elements, [&](int64_t b) {
    const BlockInfo& block = sharding->blocks[size_t(b)];
    const DeviceMemory::For memory(block.devices.front());
    const at::Tensor out = at::empty(extents(block.intervals), at::kFloat);
    if (!block.empty) draw(std::span<const Interval>(block.intervals), out.data_ptr<float>());
    blocks[size_t(b)] = moved_to(out.to(dtype), block_device(sharding->mesh(), block));
  });
  return trace_constant(DTensor(sharding, std::move(blocks)), [&] {
    std::vector<Interval> all;
    for (int64_t extent : shape) all.push_back({0, extent});
    const at::Tensor numbers = at::empty(shape, at::kFloat);
    draw(std::span<const Interval>(all), numbers.data_ptr<float>());
    return numbers.to(dtype);
  });
}

}  // namespace

void detail::check_real(const at::Tensor& tensor, const std::string& where) {
  if (!tensor.is_complex()) return;
  throw ConfigError(where, "numbers are real", dtype_name(tensor.scalar_type()),
                    "pass real and imaginary parts as an axis of two, from at::view_as_real()");
}

DTensor pack(const at::Tensor& tensor, const Layout& layout) {
  check_tensor(tensor, layout);
  return trace_constant(shard_tensor(tensor, 0, shape_of(tensor), layout, true),
                        [&] { return tensor.cpu().clone(); });
}

DTensor pack(at::Tensor&& tensor, const Layout& layout) {
  check_tensor(tensor, layout);
  const at::Tensor taken = taken_over(std::move(tensor));
  if (!taken.defined()) return pack(std::as_const(tensor), layout);
  return trace_constant(shard_tensor(taken, 0, shape_of(taken), layout, false),
                        [&] { return taken.cpu(); });
}

DTensor pack(const at::Tensor& tensor) { return pack(tensor, default_layout(tensor.dim())); }

DTensor pack(at::Tensor&& tensor) {
  const Layout layout = default_layout(tensor.dim());
  return pack(std::move(tensor), layout);
}

DTensor pack_rows(at::Tensor&& tensor, Interval local_rows, int64_t rows, const Layout& layout) {
  check_rows(tensor, local_rows, rows, layout);
  Shape shape = shape_of(tensor);
  shape[0] = rows;
  const at::Tensor taken = taken_over(std::move(tensor));
  return shard_tensor(taken.defined() ? taken : tensor, local_rows.lo, shape, layout,
                      !taken.defined());
}

DTensor pack(const std::vector<at::Tensor>& per_device, const Layout& layout,
             std::optional<Shape> shape) {
  const c10::InferenceMode inference;
  const size_t devices = layout.defined() ? layout.mesh().local_ids().size() : 0;
  if (devices != per_device.size() || devices == 0) {
    throw ShapeError("pack", str("one tensor for each of the ", devices, " local devices"),
                     str(per_device.size(), " tensors"), "pass them in mesh order");
  }
  for (const at::Tensor& shard : per_device) check_tensor(shard, layout);
  const ShardingPtr target = intern(shape ? *shape : global_shape(per_device[0], layout),
                                    per_device[0].scalar_type(), layout);
  const BlockPolicyScope finest(BlockPolicy::per_device);
  const ShardingPtr shards = intern(target->shape, target->dtype, layout);
  Blocks blocks;
  for (size_t i = 0; i < per_device.size(); ++i) {
    const Shape want = extents(shards->blocks[i].intervals);
    if (shape_of(per_device[i]) != want) {
      throw ShapeError("pack", str("the shard of local device ", i, " has shape ", to_string(want)),
                       to_string(shape_of(per_device[i])),
                       "give the global shape if shards differ in size");
    }
    if (per_device[i].scalar_type() != target->dtype) {
      throw ConfigError("pack", str("all shards are ", dtype_name(target->dtype)),
                        str("shard ", i, " is ", dtype_name(per_device[i].scalar_type())),
                        "give all shards one dtype");
    }
    const DeviceMemory::For memory(shards->blocks[i].devices.front());
    const c10::Device device = block_device(shards->mesh(), shards->blocks[i]);
    const at::Tensor& shard = per_device[i];
    blocks.push_back(shard.device() == device ? shard.clone() : moved_to(shard, device));
  }
  return trace_constant(relayout_to(DTensor(shards, std::move(blocks)), target),
                        [] { return at::Tensor(); });
}

std::vector<at::Tensor> unpack(const DTensor& value) {
  if (is_abstract()) {
    throw StateError("unpack", "the value must have data",
                     "a value of a planned step, without data",
                     "plan a model that does not read shards");
  }
  resolve(value);
  std::vector<at::Tensor> shards;
  const int devices = static_cast<int>(value.mesh().local_ids().size());
  for (int i = 0; i < devices; ++i) shards.push_back(value.local(i));
  return shards;
}

DTensor copy_to_mesh(const at::Tensor& value, const Layout& layout) { return pack(value, layout); }

DTensor detail::copy_to_mesh_value(const DTensor& value, const Layout& layout) {
  const Mesh &from = value.mesh(), to = abstract_layout(layout).mesh();
  const bool connected = from.communicator() != nullptr &&
                         (!to.communicator() || to.communicator() == from.communicator());
  if (connected || from.root() == to.root()) return transfer_value(value, layout);
  if (!from.is_local()) return pack(value.full(), layout);
  // Avoids the host, and copies nothing if both meshes share memory.
  const DTensor replicated = relayout_value(value, Layout::replicated(from, value.rank()));
  check_tensor(replicated.blocks()[0], layout);
  return shard_tensor(replicated.blocks()[0], 0, value.shape(), layout, false);
}

DefaultMeshScope::DefaultMeshScope(const Mesh& mesh)
    : mesh_(thread_state().default_mesh, mesh), layout_(thread_state().default_layout, Layout()) {}

Mesh default_mesh() {
  static const Mesh single = create_mesh({{"batch", 1}});
  const Mesh& scoped = thread_state().default_mesh;
  return scoped.defined() ? scoped : single;
}

DefaultLayoutScope::DefaultLayoutScope(const Layout& layout)
    : layout_(thread_state().default_layout, layout) {}

Layout detail::default_layout(int64_t rank) {
  const Layout& scoped = thread_state().default_layout;
  if (scoped.defined() && scoped.rank() == rank) return scoped;
  if (scoped.defined()) return Layout::replicated(scoped.mesh(), rank);
  return Layout::replicated(default_mesh(), rank);
}

DTensor filled(const Shape& shape, double value, at::ScalarType dtype, const Layout& layout) {
  const c10::InferenceMode inference;
  const ShardingPtr sharding = intern(shape, dtype, layout);
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    const DeviceMemory::For memory(block.devices.front());
    blocks.push_back(at::full(extents(block.intervals), value, block_options(*sharding, block)));
  }
  return trace_constant(DTensor(sharding, std::move(blocks)), [&] {
    return at::full({}, value, at::TensorOptions().dtype(dtype)).expand(shape);
  });
}

DTensor filled(const Shape& shape, double value, at::ScalarType dtype) {
  return filled(shape, value, dtype, default_layout(static_cast<int64_t>(shape.size())));
}

DTensor zeros(const Shape& shape, at::ScalarType dtype) { return filled(shape, 0, dtype); }
DTensor ones(const Shape& shape, at::ScalarType dtype) { return filled(shape, 1, dtype); }

DTensor scalar(double value, const Mesh& mesh, at::ScalarType dtype) {
  return filled({}, value, dtype, Layout::replicated(mesh, 0));
}

DTensor stateless_uniform(const Shape& shape, Seed seed, double minval, double maxval,
                          at::ScalarType dtype) {
  return drawn(shape, dtype, [&](std::span<const Interval> slice, float* out) {
    stateless_uniform(seed, shape, slice, float(minval), float(maxval), out);
  });
}

DTensor stateless_normal(const Shape& shape, Seed seed, double mean, double stddev,
                         at::ScalarType dtype) {
  return drawn(shape, dtype, [&](std::span<const Interval> slice, float* out) {
    stateless_normal(seed, shape, slice, float(mean), float(stddev), out);
  });
}

DTensor stateless_truncated_normal(const Shape& shape, Seed seed, double mean, double stddev,
                                   at::ScalarType dtype) {
  return drawn(shape, dtype, [&](std::span<const Interval> slice, float* out) {
    stateless_truncated_normal(seed, shape, slice, float(mean), float(stddev), out);
  });
}

}  // namespace tessera
