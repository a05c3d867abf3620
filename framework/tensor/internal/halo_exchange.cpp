#include <tessera/framework/tensor/internal/halo_exchange.hpp>

#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>
#include <tessera/framework/comm/world_size_invariant.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/execution.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

/// Returns groups of local blocks that differ only along the axis' dimensions, in member order.
std::vector<std::vector<int>> rows(const Sharding& sharding, int64_t axis) {
  const std::vector<int64_t> members = block_members(sharding, axis);
  std::map<std::vector<int64_t>, std::map<int64_t, int>> rows_by_group;
  for (size_t b = 0; b < sharding.blocks.size(); ++b) {
    std::vector<int64_t> group = sharding.blocks[b].group;
    for (int dim : sharding.layout.axis(axis)) group[size_t(dim)] = 0;
    rows_by_group[group][members[b]] = static_cast<int>(b);
  }
  std::vector<std::vector<int>> list;
  for (const auto& [group, row] : rows_by_group) {
    list.emplace_back();
    for (const auto& [member, block] : row) list.back().push_back(block);
  }
  return list;
}

at::Tensor slice_interval(const at::Tensor& tensor, int64_t axis, Interval have, Interval want) {
  if (have == want) return tensor;
  return tensor.narrow(axis, want.lo - have.lo, want.size());
}

using Matrix = std::vector<std::vector<at::Tensor>>;

/// Sends each member the part of its interval in `to` that local members hold (their intervals in
/// `from`).
Matrix exchange(const Sharding& sharding, const Group& group, int64_t axis,
                const std::vector<int>& row, const Blocks& blocks,
                const std::vector<Interval>& from, const std::vector<Interval>& to) {
  Communicator& communicator = communicator_of(sharding.mesh());
  Matrix send, recv;
  for (size_t i = 0; i < row.size(); ++i) {
    const DeviceMemory::For device(row[i]);
    const size_t me = static_cast<size_t>(group.local[i]);
    const at::Tensor& mine = blocks[size_t(row[i])];
    std::vector<at::Tensor> out(to.size()), in(to.size());
    for (size_t m = 0; m < to.size(); ++m) {
      const Interval overlap = intersect(from[me], to[m]);
      if (!overlap.empty()) out[m] = slice_interval(mine, axis, from[me], overlap);
      const Interval requested = intersect(from[m], to[me]);
      if (requested.empty() || group.owner[m] == communicator.rank()) continue;
      Shape shape = mine.sizes().vec();
      shape[size_t(axis)] = requested.size();
      in[m] = at::empty(shape, mine.options());
    }
    send.push_back(std::move(out));
    recv.push_back(std::move(in));
  }
  wait(communicator.all_to_all(group, send, recv));
  return recv;
}

at::Tensor filled_along(const at::Tensor& tensor, int64_t axis, int64_t extent, double fill,
                        at::ScalarType dtype) {
  Shape shape = tensor.sizes().vec();
  shape[size_t(axis)] = extent;
  return at::full(shape, fill, tensor.options().dtype(dtype));
}

/// Assembles the interval `want` of the axis from the pieces that each member sent.
at::Tensor joined(const std::vector<at::Tensor>& received, int64_t axis,
                  const std::vector<Interval>& from, Interval want, const at::Tensor& mine,
                  double fill) {
  int64_t covered = 0;
  for (Interval interval : from) covered += intersect(interval, want).size();
  const auto make = [&] {
    if (covered < want.size()) {
      return filled_along(mine, axis, want.size(), fill, mine.scalar_type());
    }
    Shape shape = mine.sizes().vec();
    shape[size_t(axis)] = want.size();
    return at::empty(shape, mine.options());
  };
  at::Tensor result;
  for (size_t m = 0; m < from.size(); ++m) {
    const Interval overlap = intersect(from[m], want);
    if (overlap.empty()) continue;
    if (overlap == want) {
      // A piece of another device of this process is a view, one of another process a copy.
      const at::Tensor piece = moved_to(received[m], mine.device());
      return world_size_invariant() ? piece.contiguous() : piece;
    }
    if (!result.defined()) result = make();
    slice_interval(result, axis, want, overlap).copy_(received[m]);
  }
  if (result.defined()) return result;
  return filled_along(mine, axis, std::max<int64_t>(0, want.size()), fill, mine.scalar_type());
}

/// Sums the pieces of the interval `have` that each member sent.
at::Tensor sum_pieces(const std::vector<at::Tensor>& received, int64_t axis,
                      const std::vector<Interval>& from, Interval have, const at::Tensor& mine) {
  const at::ScalarType wide = reduction_dtype(mine.scalar_type(), Reduce::sum);
  const at::Tensor sum = filled_along(mine, axis, have.size(), 0, wide);
  for (size_t m = 0; m < from.size(); ++m) {
    const Interval overlap = intersect(from[m], have);
    if (overlap.empty()) continue;
    slice_interval(sum, axis, have, overlap).add_(moved_to(received[m], mine.device()));
  }
  return sum.to(mine.scalar_type());
}

/// Returns the maximum, over the receivers of `to`, of the bytes that others in `from` send it.
double missing_bytes(const Sharding& sharding, int64_t axis, const std::vector<Interval>& from,
                     const std::vector<Interval>& to) {
  int64_t max_missing = 0;
  for (size_t m = 0; m < to.size(); ++m) {
    int64_t missing = 0;
    for (size_t j = 0; j < from.size(); ++j) {
      if (j != m) missing += intersect(from[j], to[m]).size();
    }
    max_missing = std::max(max_missing, missing);
  }
  Shape rest = sharding.shape;
  rest.erase(rest.begin() + axis);
  return double(max_missing) * shard_bytes(rest, sharding.dtype, sharding.layout.remove({axis}));
}

void log_exchange(const Sharding& sharding, int64_t axis, const std::vector<Interval>& from,
                  const std::vector<Interval>& to) {
  CommLog* log = CommLogScope::current();
  if (to.size() <= 1) return;
  thread_state().communicated = true;
  if (!log) return;
  const double bytes = missing_bytes(sharding, axis, from, to);
  if (bytes == 0) return;
  DimMask dims = 0;
  for (int dim : sharding.layout.axis(axis)) dims |= 1u << dim;
  const Mesh& mesh = sharding.mesh();
  log->add({CommOp::exchange, mesh.names(dims), mesh.size_of(dims), int64_t(bytes), bytes});
}

/// Announces the collective to the communicator, which checks that all ranks run the same one.
void announce_collective(const Sharding& sharding, int64_t axis) {
  const Mesh& mesh = sharding.mesh();
  DimMask dims = 0;
  for (int dim : sharding.layout.axis(axis)) dims |= 1u << dim;
  if (mesh.is_local() || mesh.size_of(dims) == 1) return;
  communicator_of(mesh).begin({.op = CommOp::exchange,
                               .mesh = mesh,
                               .dims = dims,
                               .dtype = sharding.dtype,
                               .shape = sharding.shape,
                               .axis = axis});
}

/// Returns one interval per member. `intervals` are per member already, or per shard; a member's
/// shards are contiguous.
std::vector<Interval> by_member(const Sharding& sharding, int64_t axis,
                                const std::vector<Interval>& intervals) {
  const std::vector<int>& dims = sharding.layout.axis(axis);
  int64_t count = 1;
  for (int dim : dims) count *= sharding.groups[size_t(dim)];
  if (count == int64_t(intervals.size())) return intervals;
  std::vector<Interval> list(size_t(count), {0, 0});
  for (int64_t shard = 0; shard < int64_t(intervals.size()); ++shard) {
    int64_t rest = shard, member = 0, stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      const int64_t size = sharding.mesh().dim_size(dims[i]);
      const int64_t groups = sharding.groups[size_t(dims[i])];
      member += group_of(size, groups, rest % size) * stride;
      stride *= groups;
      rest /= size;
    }
    Interval& joined = list[size_t(member)];
    const Interval interval = intervals[size_t(shard)];
    if (interval.empty()) continue;
    joined = joined.empty()
                 ? interval
                 : Interval{std::min(joined.lo, interval.lo), std::max(joined.hi, interval.hi)};
  }
  return list;
}

}  // namespace

std::vector<Interval> group_intervals(const Layout& layout, int64_t axis, int64_t extent,
                                      const Groups& groups) {
  std::vector<Interval> list;
  const std::vector<int>& dims = layout.axis(axis);
  int64_t count = 1;
  for (int dim : dims) count *= groups[size_t(dim)];
  std::vector<Interval> range(groups.size(), {0, 1});
  for (int64_t m = 0; m < count; ++m) {
    int64_t rest = m;
    for (size_t i = dims.size(); i-- > 0;) {
      const size_t d = static_cast<size_t>(dims[i]);
      range[d] = group_range(layout.mesh().dim_size(dims[i]), groups[d], rest % groups[d]);
      rest /= groups[d];
    }
    list.push_back(axis_interval(layout, axis, extent, range));
  }
  return list;
}

AxisShards axis_shards(const Sharding& sharding, int64_t axis) {
  return {axis,
          group_intervals(sharding.layout, axis, sharding.shape[size_t(axis)], sharding.groups)};
}

AxisShards layout_shards(const Sharding& sharding, int64_t axis) {
  AxisShards shards{axis, {}};
  const int64_t count = sharding.layout.num_shards(axis);
  for (int64_t i = 0; i < count; ++i) {
    shards.have.push_back(shard_interval(sharding.shape[size_t(axis)], count, i));
  }
  return shards;
}

std::vector<int64_t> block_members(const Sharding& sharding, int64_t axis) {
  std::vector<int64_t> members;
  for (const BlockInfo& block : sharding.blocks) {
    int64_t member = 0;
    for (int dim : sharding.layout.axis(axis)) {
      member = member * sharding.groups[size_t(dim)] + block.group[size_t(dim)];
    }
    members.push_back(member);
  }
  return members;
}

Blocks gather_intervals(const Sharding& sharding, const Blocks& blocks, const AxisShards& shards,
                        const std::vector<Interval>& requested, double fill) {
  const int64_t axis = shards.axis;
  log_exchange(sharding, axis, shards.have, requested);
  announce_collective(sharding, axis);
  if (blocks.empty()) return {};
  const std::vector<Interval> from = by_member(sharding, axis, shards.have);
  const std::vector<Interval> to = by_member(sharding, axis, requested);
  const Group group = make_group(sharding.mesh(), sharding.layout.axis(axis), sharding.groups);
  Blocks out(blocks.size());
  for (const std::vector<int>& row : rows(sharding, axis)) {
    const Matrix received = exchange(sharding, group, axis, row, blocks, from, to);
    for (size_t i = 0; i < row.size(); ++i) {
      const DeviceMemory::For device(row[i]);
      const at::Tensor& mine = blocks[size_t(row[i])];
      out[size_t(row[i])] = joined(received[i], axis, from, to[size_t(group.local[i])], mine, fill);
    }
  }
  return out;
}

Blocks gather_intervals(const DTensor& value, int64_t axis, const std::vector<Interval>& requested,
                        double fill) {
  resolve(value);
  const Sharding& sharding = *value.sharding();
  const int64_t a = normalize_axis(axis, value.rank(), "fetch");
  const AxisShards shards = int64_t(requested.size()) == value.layout().num_shards(a)
                                ? layout_shards(sharding, a)
                                : axis_shards(sharding, a);
  return gather_intervals(sharding, value.blocks(), shards, requested, fill);
}

Blocks scatter_add_intervals(const Sharding& sharding, const Blocks& pieces,
                             const AxisShards& shards, const std::vector<Interval>& requested) {
  const int64_t axis = shards.axis;
  log_exchange(sharding, axis, requested, shards.have);
  announce_collective(sharding, axis);
  if (pieces.empty()) return {};
  const std::vector<Interval> from = by_member(sharding, axis, requested);
  const std::vector<Interval> to = by_member(sharding, axis, shards.have);
  const Group group = make_group(sharding.mesh(), sharding.layout.axis(axis), sharding.groups);
  Blocks out(pieces.size());
  for (const std::vector<int>& row : rows(sharding, axis)) {
    const Matrix received = exchange(sharding, group, axis, row, pieces, from, to);
    for (size_t i = 0; i < row.size(); ++i) {
      const DeviceMemory::For device(row[i]);
      const at::Tensor& mine = pieces[size_t(row[i])];
      out[size_t(row[i])] = sum_pieces(received[i], axis, from, to[size_t(group.local[i])], mine);
    }
  }
  return out;
}

}  // namespace tessera::detail
