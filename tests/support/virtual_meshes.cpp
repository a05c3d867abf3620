#include "tests/support/virtual_meshes.hpp"

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <map>

#include "tests/support/layouts.hpp"

namespace tessera::test {

using namespace detail;

namespace {

at::Generator generator(uint64_t seed) { return at::make_generator<at::CPUGeneratorImpl>(seed); }

bool is_float(const at::Tensor& t) { return at::isFloatingType(t.scalar_type()); }

/// Returns parts that reduce to the value; undefined for one that is absent.
std::vector<at::Tensor> addends(const at::Tensor& full, int64_t count, Reduce kind, uint64_t seed) {
  const at::Generator gen = generator(seed);
  const auto random = [&] { return at::rand(full.sizes(), gen, at::kDouble); };
  std::vector<at::Tensor> parts(static_cast<size_t>(count));
  const size_t absent = seed % 3 == 0 && count > 1 ? seed / 3 % size_t(count) : size_t(count);
  const size_t last = absent + 1 == size_t(count) ? absent - 1 : size_t(count) - 1;
  if (kind == Reduce::sum) {
    at::Tensor rest = full;
    for (size_t i = 0; i < last; ++i) {
      if (i == absent) continue;
      parts[i] = rest * 0.6 + (random() - 0.5).to(full.scalar_type());
      if (!is_float(full)) parts[i] = rest.div(2, "floor").to(full.scalar_type()) + 1;
      rest = rest - parts[i];
    }
    parts[last] = rest;
    return parts;
  }
  // One part has each element's extreme, the others hold something beyond it.
  const at::Tensor owner = (random() * double(count)).to(at::kLong);
  for (size_t i = 0; i < size_t(count); ++i) {
    if (i == absent) continue;
    const at::Tensor takes_over =
        owner.eq(int64_t(absent))
            .logical_and(at::full_like(owner, i == last, owner.options().dtype(at::kBool)));
    const at::Tensor mine = owner.eq(int64_t(i)).logical_or(takes_over);
    const double sign = kind == Reduce::max ? -1 : 1;
    at::Tensor beyond = full;
    if (full.scalar_type() == at::kBool) {
      beyond = at::full_like(full, kind == Reduce::min);
    } else {
      beyond = full + (random() * 3 * sign).to(full.scalar_type());
    }
    parts[i] = at::where(mine, full, beyond);
  }
  return parts;
}

/// Returns the index of a coordinate tuple along the partial dimensions.
int64_t pending_index(const Layout& layout, const std::vector<int64_t>& at) {
  int64_t index = 0;
  for (int d = 0; d < layout.mesh().rank(); ++d) {
    if (!(layout.partial_dims() >> d & 1)) continue;
    index = index * layout.mesh().dim_size(d) + at[size_t(d)];
  }
  return index;
}

/// Returns the reduction of all parts that a block stands for; undefined if all are absent.
at::Tensor block_addend(const ShardingPtr& sharding, const BlockInfo& block,
                        const std::vector<at::Tensor>& parts) {
  const Layout& layout = sharding->layout;
  const Mesh& mesh = layout.mesh();
  at::Tensor total;
  std::vector<bool> seen(parts.size());
  for (int64_t id = 0; id < mesh.size(); ++id) {
    const std::vector<int64_t> at = mesh.coordinates(id);
    bool inside = true;
    for (int d = 0; d < mesh.rank(); ++d) {
      if (!(layout.partial_dims() >> d & 1)) continue;
      const Interval range =
          group_range(mesh.dim_size(d), sharding->groups[size_t(d)], block.group[size_t(d)]);
      inside = inside && at[size_t(d)] >= range.lo && at[size_t(d)] < range.hi;
    }
    const size_t index = size_t(pending_index(layout, at));
    if (!inside || seen[index]) continue;
    seen[index] = true;
    const at::Tensor& part = parts[index];
    if (!part.defined()) continue;
    if (total.defined()) {
      reduce_into(layout.partial_kind(), total, part);
    } else {
      total = part.clone();
    }
  }
  return total.defined() ? cut(total, block.intervals).clone() : total;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.eq(b).logical_or(a.ne(a).logical_and(b.ne(b))).all().item<bool>();
}

/// Whether two blocks are replicas. On GPUs they may differ by rounding: CUDA's atomic additions
/// vary between runs, and kernels of any GPU may choose their order of additions by strides, which
/// differ between replicas.
bool are_replicas(const at::Tensor& a, const at::Tensor& b, bool on_gpu) {
  if (!on_gpu || !is_float(a)) return same_bits(a, b);
  const size_t bytes = a.element_size();
  const double tolerance = bytes == 8 ? 1e-12 : bytes == 4 ? 1e-5 : 1e-2;
  return at::allclose(a, b, tolerance, tolerance, /*equal_nan=*/true);
}

/// Joins shards and compares replicas.
class Joiner {
 public:
  Joiner(const DTensor& value, std::string& wrong) : value_(value), wrong_(wrong) {}

  at::Tensor run() {
    const Mesh& mesh = value_.mesh();
    for (int64_t id = 0; id < mesh.size() && wrong_.empty(); ++id) add(mesh.coordinates(id));
    if (!wrong_.empty()) return at::Tensor();
    at::Tensor total = identity(value_.shape());
    for (const auto& [key, full] : joined_) reduce_into(kind(), total, full);
    if (value_.layout().is_partial() || joined_.empty()) return total;
    return joined_.begin()->second;
  }

 private:
  using Key = std::vector<int64_t>;

  Reduce kind() const { return value_.layout().partial_kind(); }
  at::Tensor identity(const Shape& shape) const {
    return reduce_identity(kind(), shape, at::TensorOptions().dtype(value_.dtype())).clone();
  }

  void add(const std::vector<int64_t>& at) {
    const Sharding& sharding = *value_.sharding();
    const int index = sharding.block_of(at);
    const BlockInfo& block = sharding.blocks[size_t(index)];
    at::Tensor piece = value_.blocks()[size_t(index)];
    const bool on_gpu = piece.defined() && !piece.is_cpu();
    if (piece.defined()) piece = piece.cpu();
    Key key;
    for (int d = 0; d < value_.mesh().rank(); ++d) {
      if (value_.layout().partial_dims() >> d & 1) key.push_back(block.group[size_t(d)]);
    }
    if (!piece.defined()) {
      if (!value_.layout().is_partial()) wrong_ = str("block ", index, " is absent");
      return;
    }
    if (piece.scalar_type() != value_.dtype()) wrong_ = str("block ", index, " has another dtype");
    const std::vector<Interval> mine = shard_intervals(value_.layout(), value_.shape(), at);
    for (int64_t a = 0; a < value_.rank(); ++a) {
      const Interval have = block.intervals[size_t(a)], want = mine[size_t(a)];
      if (piece.dim() != value_.rank() || piece.size(a) != have.size() || want.lo < have.lo ||
          want.hi > have.hi) {
        wrong_ =
            detail::str("block ", index, " of sizes ", piece.sizes(), " does not hold its shard");
        return;
      }
      piece = piece.narrow(a, want.lo - have.lo, want.size());
    }
    insert(key, mine, piece, on_gpu);
  }

  void insert(Key key, const std::vector<Interval>& mine, const at::Tensor& piece, bool on_gpu) {
    at::Tensor& full = joined_[key];
    if (!full.defined()) full = identity(value_.shape());
    for (Interval interval : mine) key.insert(key.end(), {interval.lo, interval.hi});
    const auto [first, fresh] = shards_.emplace(key, piece);
    if (fresh) {
      cut(full, mine).copy_(piece);
    } else if (!are_replicas(first->second, piece, on_gpu)) {
      wrong_ = "replicas differ";
    }
  }

  const DTensor& value_;
  std::string& wrong_;
  std::map<Key, at::Tensor> joined_;
  std::map<Key, at::Tensor> shards_;
};

}  // namespace

Mesh virtual_mesh(const std::vector<int64_t>& sizes) {
  MeshDims dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    dims.push_back({std::string(1, char('x' + d)), sizes[d]});
  return create_mesh(dims);
}

std::vector<Interval> shard_intervals(const Layout& layout, const Shape& shape,
                                      const std::vector<int64_t>& at) {
  std::vector<Interval> intervals;
  for (int64_t a = 0; a < layout.rank(); ++a) {
    int64_t shard = 0;
    for (int dim : layout.axis(a)) shard = shard * layout.mesh().dim_size(dim) + at[size_t(dim)];
    intervals.push_back(shard_interval(shape[size_t(a)], layout.num_shards(a), shard));
  }
  return intervals;
}

std::string short_name(const Mesh& mesh) { return mesh.describe(); }

std::string short_name(const std::vector<Layout>& layouts) {
  std::string text;
  for (const Layout& layout : layouts) text += (text.empty() ? "" : " , ") + layout.describe();
  for (size_t at; (at = text.find(unsharded)) != std::string::npos;) text.replace(at, 9, "-");
  return text;
}

at::Tensor random_values(const SampleInput& input, uint64_t seed) {
  const c10::InferenceMode inference;
  const at::Generator gen = generator(seed);
  const int64_t count = numel(input.shape);
  at::Tensor unit = at::rand(input.shape, gen, at::kDouble);
  if (input.distinct) {
    unit = at::randperm(count, gen, at::kLong).to(at::kDouble).add(0.5).div(double(count));
    unit = unit.reshape(input.shape);
  }
  const at::Tensor values = unit * (input.hi - input.lo) + input.lo;
  return (at::isFloatingType(input.dtype) ? values : values.floor()).to(input.dtype);
}

std::vector<Layout> layouts_of(const Mesh& mesh, int64_t rank, const std::vector<Reduce>& kinds) {
  std::vector<Layout> list = all_layouts(mesh, rank);
  for (Reduce kind : kinds) {
    for (Layout& layout : pending_layouts(mesh, rank, kind)) list.push_back(std::move(layout));
  }
  return list;
}

std::vector<std::vector<Layout>> choices(const std::vector<std::vector<Layout>>& lists,
                                         size_t limit, uint64_t seed) {
  size_t product = 1;
  for (const std::vector<Layout>& list : lists) product *= list.size();
  std::vector<std::vector<Layout>> all;
  for (size_t i = 0; i < std::min(product, limit); ++i) {
    size_t rest = product <= limit ? i : mix(seed, i) % product;
    std::vector<Layout> one;
    for (const std::vector<Layout>& list : lists) {
      one.push_back(list[rest % list.size()]);
      rest /= list.size();
    }
    all.push_back(std::move(one));
  }
  return all;
}

DTensor make_value(const at::Tensor& full, const Layout& layout, uint64_t seed) {
  const c10::InferenceMode inference;
  const ShardingPtr sharding = intern(full.sizes().vec(), full.scalar_type(), layout);
  std::vector<at::Tensor> parts = {full};
  if (layout.is_partial()) {
    parts =
        addends(full, layout.mesh().size_of(layout.partial_dims()), layout.partial_kind(), seed);
  }
  Blocks blocks;
  for (const BlockInfo& block : sharding->blocks) {
    const at::Tensor part = layout.is_partial() ? block_addend(sharding, block, parts)
                                                : cut(full, block.intervals).clone();
    blocks.push_back(moved_to(part, block_device(layout.mesh(), block)));
  }
  return DTensor(sharding, std::move(blocks));
}

at::Tensor assemble(const DTensor& value, std::string& wrong) {
  const c10::InferenceMode inference;
  return Joiner(value, wrong).run();
}

uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x =
      a * 0x9e3779b97f4a7c15ULL + b * 0xbf58476d1ce4e5b9ULL + c * 0x94d049bb133111ebULL + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t text_seed(const std::string& text) {
  uint64_t hash = 1469598103934665603ULL;
  for (char c : text) hash = (hash ^ uint8_t(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace tessera::test
