#include <tessera/framework/tensor/fetch.hpp>

#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/comm/communicator.hpp>
#include <tessera/framework/tensor/execution.hpp>
#include <tessera/framework/tensor/relayout.hpp>

namespace tessera {
namespace {

DimMask mask_of(const std::vector<int>& dims) {
  DimMask mask = 0;
  for (int dim : dims) mask |= 1u << dim;
  return mask;
}

/// Local blocks that differ only along the axis' dimensions, in member order.
std::vector<std::vector<int>> rows(const Sharding& sharding, int64_t axis) {
  const std::vector<int64_t> members = block_members(sharding, axis);
  std::map<std::vector<int64_t>, std::map<int64_t, int>> places;
  for (size_t b = 0; b < sharding.blocks.size(); ++b) {
    std::vector<int64_t> place = sharding.blocks[b].group;
    for (int dim : sharding.layout.axis(axis)) place[size_t(dim)] = 0;
    places[place][members[b]] = static_cast<int>(b);
  }
  std::vector<std::vector<int>> list;
  for (const auto& [place, row] : places) {
    list.emplace_back();
    for (const auto& [member, block] : row) list.back().push_back(block);
  }
  return list;
}

at::Tensor part(const at::Tensor& tensor, int64_t axis, Interval have, Interval want) {
  if (have == want) return tensor;
  return tensor.narrow(axis, want.lo - have.lo, want.size());
}

using Matrix = std::vector<std::vector<at::Tensor>>;

/// Sends each member of `to` what of its interval lies in the local members' intervals `from`.
Matrix exchange(const Sharding& sharding, const Group& group, int64_t axis,
                const std::vector<int>& row, const Blocks& blocks,
                const std::vector<Interval>& from, const std::vector<Interval>& to) {
  Communicator& communicator = communicator_of(sharding.mesh());
  Matrix send, recv;
  for (size_t i = 0; i < row.size(); ++i) {
    const size_t me = static_cast<size_t>(group.local[i]);
    const at::Tensor& mine = blocks[size_t(row[i])];
    std::vector<at::Tensor> out(to.size()), in(to.size());
    for (size_t m = 0; m < to.size(); ++m) {
      const Interval piece = intersect(from[me], to[m]);
      if (!piece.empty()) out[m] = part(mine, axis, from[me], piece);
      const Interval wanted = intersect(from[m], to[me]);
      if (wanted.empty() || group.owner[m] == communicator.rank()) continue;
      Shape shape = mine.sizes().vec();
      shape[size_t(axis)] = wanted.size();
      in[m] = at::empty(shape, mine.options());
    }
    send.push_back(std::move(out));
    recv.push_back(std::move(in));
  }
  wait(communicator.all_to_all(group, send, recv));
  return recv;
}

void log_exchange(const Sharding& sharding, const AxisShards& shards,
                  const std::vector<Interval>& wanted) {
  CommLog* log = CommLogScope::current();
  const DimMask mask = mask_of(sharding.layout.axis(shards.axis));
  if (!log || shards.have.size() <= 1) return;
  int64_t most = 0;
  for (size_t m = 0; m < wanted.size(); ++m) {
    const Interval inside =
        intersect(wanted[m], {shards.have.front().lo, shards.have.back().hi});
    most = std::max(most, inside.size() - intersect(inside, shards.have[m]).size());
  }
  if (most == 0) return;
  const int64_t extent = sharding.shape[size_t(shards.axis)];
  const double row = extent ? double(sharding.bytes()) / double(extent) : 0;
  log->add({CommOp::exchange, sharding.mesh().names(mask), int64_t(wanted.size()),
            int64_t(row * double(most)), row * double(most)});
}


}  // namespace

AxisShards axis_shards(const Sharding& sharding, int64_t axis) {
  AxisShards shards{axis, {}};
  const std::vector<int>& dims = sharding.layout.axis(axis);
  int64_t count = 1;
  for (int dim : dims) count *= sharding.groups[size_t(dim)];
  std::vector<Interval> range(sharding.groups.size(), {0, 1});
  for (int64_t m = 0; m < count; ++m) {
    int64_t rest = m;
    for (size_t i = dims.size(); i-- > 0;) {
      const size_t d = static_cast<size_t>(dims[i]);
      range[d] = group_range(sharding.mesh().dim_size(dims[i]), sharding.groups[d],
                             rest % sharding.groups[d]);
      rest /= sharding.groups[d];
    }
    shards.have.push_back(
        axis_interval(sharding.layout, axis, sharding.shape[size_t(axis)], range));
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

Blocks fetch(const Sharding& sharding, const Blocks& blocks, const AxisShards& shards,
             const std::vector<Interval>& wanted, double fill) {
  const c10::InferenceMode inference;
  log_exchange(sharding, shards, wanted);
  const int64_t axis = shards.axis;
  const Group group =
      make_group(sharding.mesh(), sharding.layout.axis(axis), sharding.groups);
  Blocks out(blocks.size());
  for (const std::vector<int>& row : rows(sharding, axis)) {
    const Matrix got = exchange(sharding, group, axis, row, blocks, shards.have, wanted);
    for (size_t i = 0; i < row.size(); ++i) {
      const Interval want = wanted[size_t(group.local[i])];
      const at::Tensor& mine = blocks[size_t(row[i])];
      at::Tensor& result = out[size_t(row[i])];
      for (size_t m = 0; m < wanted.size(); ++m) {
        const Interval piece = intersect(shards.have[m], want);
        if (piece.empty()) continue;
        if (piece == want) {
          result = got[i][m];
          break;
        }
        if (!result.defined()) {
          Shape shape = mine.sizes().vec();
          shape[size_t(axis)] = want.size();
          result = at::full(shape, fill, mine.options());
        }
        part(result, axis, want, piece).copy_(got[i][m]);
      }
      if (result.defined()) continue;
      Shape shape = mine.sizes().vec();
      shape[size_t(axis)] = want.size();
      result = at::full(shape, fill, mine.options());
    }
  }
  return out;
}

Blocks fetch(const DTensor& value, int64_t axis, const std::vector<Interval>& wanted,
             double fill) {
  resolve(value);
  return fetch(*value.sharding(), value.blocks(), axis_shards(*value.sharding(), axis), wanted,
               fill);
}

Blocks fetch_add(const Sharding& sharding, const Blocks& pieces, const AxisShards& shards,
                 const std::vector<Interval>& wanted) {
  const c10::InferenceMode inference;
  const int64_t axis = shards.axis;
  const Group group =
      make_group(sharding.mesh(), sharding.layout.axis(axis), sharding.groups);
  Blocks out(pieces.size());
  for (const std::vector<int>& row : rows(sharding, axis)) {
    const Matrix got = exchange(sharding, group, axis, row, pieces, wanted, shards.have);
    for (size_t i = 0; i < row.size(); ++i) {
      const Interval have = shards.have[size_t(group.local[i])];
      Shape shape = pieces[size_t(row[i])].sizes().vec();
      shape[size_t(axis)] = have.size();
      const at::Tensor sum = at::zeros(shape, pieces[size_t(row[i])].options());
      for (size_t m = 0; m < wanted.size(); ++m) {
        const Interval piece = intersect(wanted[m], have);
        if (!piece.empty()) part(sum, axis, have, piece).add_(got[i][m]);
      }
      out[size_t(row[i])] = sum;
    }
  }
  return out;
}

}  // namespace tessera
