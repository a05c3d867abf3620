#include <tessera/framework/tensor/create.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/tensor/execution.hpp>
#include <tessera/framework/tensor/relayout.hpp>

namespace tessera {
namespace {

thread_local Mesh scoped_mesh;
thread_local Layout scoped_layout;

Shape shape_of(const at::Tensor& tensor) { return tensor.sizes().vec(); }

Shape extents(const BlockInfo& block) {
  Shape shape;
  for (Interval i : block.intervals) shape.push_back(i.size());
  return shape;
}

at::Tensor cut(const at::Tensor& whole, const BlockInfo& block) {
  at::Tensor piece = whole;
  for (size_t a = 0; a < block.intervals.size(); ++a) {
    const Interval want = block.intervals[a];
    if (want.size() == piece.size(int64_t(a))) continue;
    piece = piece.narrow(int64_t(a), want.lo, want.size());
  }
  return piece;
}

void check_tensor(const at::Tensor& tensor, const Layout& layout) {
  if (!tensor.defined()) {
    throw ShapeError("pack", "a tensor holds numbers", "an undefined tensor", "");
  }
  if (!layout.defined() || tensor.dim() != layout.rank()) {
    throw LayoutError("pack", "a layout names every axis of its tensor",
                      "layout " + layout.describe() + " for shape " + to_string(shape_of(tensor)),
                      str("give it ", tensor.dim(), " entries"));
  }
}

/// False also for memory that an allocator of ours does not own, such as a user's own buffer.
bool may_take_over(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1 &&
         tensor.storage().allocator() && tensor.is_non_overlapping_and_dense();
}

DTensor pack_whole(const at::Tensor& whole, const Layout& layout, bool copy) {
  const c10::InferenceMode inference;
  check_tensor(whole, layout);
  const ShardingPtr sharding = intern(shape_of(whole), whole.scalar_type(), layout);
  const bool per_device = block_policy() == BlockPolicy::per_device;
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    const at::Tensor piece = cut(whole, block);
    blocks.push_back(copy || (per_device && !blocks.empty()) ? piece.clone() : piece);
  }
  return DTensor(sharding, std::move(blocks));
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
                      c10::toString(dtype), "draw float32 and cast");
  }
  const c10::InferenceMode inference;
  const Layout layout = default_layout(static_cast<int64_t>(shape.size()));
  const ShardingPtr sharding = intern(shape, dtype, layout);
  Blocks blocks(sharding->blocks.size());
  run_blocks(int64_t(blocks.size()), numel(shape) >= inline_elements, [&](int64_t b) {
    const BlockInfo& block = sharding->blocks[size_t(b)];
    const at::Tensor out = at::empty(extents(block), at::kFloat);
    if (!block.empty) draw(std::span<const Interval>(block.intervals), out.data_ptr<float>());
    blocks[size_t(b)] = out.to(dtype);
  });
  return DTensor(sharding, std::move(blocks));
}

}  // namespace

DTensor pack(const at::Tensor& whole, const Layout& layout) {
  return pack_whole(whole, layout, true);
}

DTensor pack(at::Tensor&& whole, const Layout& layout) {
  const c10::InferenceMode inference;
  check_tensor(whole, layout);
  if (!may_take_over(whole)) return pack_whole(whole, layout, true);
  // Views of a tensor made outside InferenceMode would keep it alive.
  const at::Tensor taken =
      at::empty({0}, whole.options())
          .set_(whole.storage(), whole.storage_offset(), whole.sizes(), whole.strides());
  whole.reset();
  return pack_whole(taken, layout, false);
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
    const Shape want = extents(shards->blocks[i]);
    if (shape_of(per_device[i]) != want) {
      throw ShapeError("pack", str("the shard of local device ", i, " has shape ", to_string(want)),
                       to_string(shape_of(per_device[i])),
                       "give the global shape if shards differ in size");
    }
    if (per_device[i].scalar_type() != target->dtype) {
      throw ConfigError("pack", str("all shards are ", c10::toString(target->dtype)),
                        str("shard ", i, " is ", c10::toString(per_device[i].scalar_type())),
                        "give all shards one dtype");
    }
    blocks.push_back(per_device[i].clone());
  }
  return relayout_to(DTensor(shards, std::move(blocks)), target);
}

std::vector<at::Tensor> unpack(const DTensor& value) {
  resolve(value);
  std::vector<at::Tensor> shards;
  const int devices = static_cast<int>(value.mesh().local_ids().size());
  for (int i = 0; i < devices; ++i) shards.push_back(value.local(i));
  return shards;
}

DTensor copy_to_mesh(const at::Tensor& value, const Layout& layout) { return pack(value, layout); }

DTensor copy_to_mesh_value(const DTensor& value, const Layout& layout) {
  if (value.mesh() == layout.mesh()) return relayout_value(value, layout);
  return pack(value.full(), layout);
}

DefaultMeshScope::DefaultMeshScope(const Mesh& mesh)
    : former_(scoped_mesh), former_layout_(scoped_layout) {
  scoped_mesh = mesh;
  scoped_layout = Layout();
}
DefaultMeshScope::~DefaultMeshScope() {
  scoped_mesh = former_;
  scoped_layout = former_layout_;
}

Mesh default_mesh() {
  static const Mesh single = create_mesh({{"batch", 1}});
  return scoped_mesh.defined() ? scoped_mesh : single;
}

DefaultLayoutScope::DefaultLayoutScope(const Layout& layout) : former_(scoped_layout) {
  scoped_layout = layout;
}
DefaultLayoutScope::~DefaultLayoutScope() { scoped_layout = former_; }

Layout default_layout(int64_t rank) {
  if (scoped_layout.defined() && scoped_layout.rank() == rank) return scoped_layout;
  if (scoped_layout.defined()) return Layout::replicated(scoped_layout.mesh(), rank);
  return Layout::replicated(default_mesh(), rank);
}

DTensor filled(const Shape& shape, double value, at::ScalarType dtype, const Layout& layout) {
  const c10::InferenceMode inference;
  const ShardingPtr sharding = intern(shape, dtype, layout);
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    blocks.push_back(at::full(extents(block), value, at::TensorOptions().dtype(dtype)));
  }
  return DTensor(sharding, std::move(blocks));
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
