#include <tessera/framework/tensor/relayout_step.hpp>

#include <algorithm>
#include <map>

#include <ATen/ATen.h>

#include <tessera/framework/comm/communicator.hpp>

namespace tessera {
namespace {

using Kind = RelayoutStep::Kind;

std::vector<int64_t> first_coordinates(const Sharding& sharding, const BlockInfo& block) {
  std::vector<int64_t> at;
  const Mesh& mesh = sharding.mesh();
  for (size_t d = 0; d < block.group.size(); ++d) {
    const int64_t size = mesh.dim_size(static_cast<int>(d));
    // An unused dimension's single group may begin in another process.
    at.push_back(
        std::max(mesh.local_box()[d].lo, group_range(size, sharding.groups[d], block.group[d]).lo));
  }
  return at;
}

class Executor {
 public:
  Executor(const Sharding& from, const Blocks& blocks, const RelayoutStep& step, const Sharding& to)
      : from_(from), in_(blocks), step_(step), to_(to), out_(to.blocks.size()) {
    for (int dim : step.dims) mask_ |= 1u << dim;
  }

  Blocks run() {
    if (step_.kind == Kind::slice) {
      slice();
      return std::move(out_);
    }
    if (CommLog* log = CommLogScope::current(); log && from_.mesh().size_of(mask_) > 1) {
      log->add(step_entry(from_.shape, from_.dtype, from_.layout, step_));
    }
    if (in_.empty()) return std::move(out_);
    group_ = make_group(from_.mesh(), step_.dims, from_.groups);
    for (const auto& [key, members] : members_by_place()) {
      switch (step_.kind) {
        case Kind::all_gather:
          all_gather(members);
          break;
        case Kind::all_reduce:
          all_reduce(members);
          break;
        case Kind::reduce_scatter:
          reduce_scatter(members);
          break;
        default:
          all_to_all(members);
          break;
      }
    }
    return std::move(out_);
  }

 private:
  using Place = std::vector<int64_t>;

  /// Local blocks that differ only in their coordinates along the step's dimensions, in order.
  std::map<Place, std::vector<int>> members_by_place() const {
    std::map<Place, std::vector<int>> places;
    for (size_t b = 0; b < from_.blocks.size(); ++b) {
      places[place(from_.blocks[b].group)].push_back(static_cast<int>(b));
    }
    for (auto& [key, blocks] : places) {
      std::stable_sort(blocks.begin(), blocks.end(), [&](int a, int b) {
        return order(from_.blocks[size_t(a)]) < order(from_.blocks[size_t(b)]);
      });
    }
    return places;
  }

  Place place(Place group) const {
    for (int dim : step_.dims) group[static_cast<size_t>(dim)] = 0;
    return group;
  }

  Place order(const BlockInfo& block) const {
    Place at;
    for (int dim : step_.dims) at.push_back(block.group[static_cast<size_t>(dim)]);
    return at;
  }

  at::TensorOptions options() const { return at::TensorOptions().dtype(from_.dtype); }

  Shape extents(const BlockInfo& block) const {
    Shape shape;
    for (Interval i : block.intervals) shape.push_back(i.size());
    return shape;
  }

  at::Tensor part(int block) const {
    const at::Tensor& tensor = in_[static_cast<size_t>(block)];
    if (tensor.defined()) return tensor;
    return reduce_identity(from_.layout.pending_kind(), extents(from_.blocks[size_t(block)]),
                           options());
  }

  std::vector<at::Tensor> parts(const std::vector<int>& members) const {
    std::vector<at::Tensor> list;
    for (int block : members) list.push_back(part(block));
    return list;
  }

  /// Addends that exist; at least one, so that every process takes part.
  std::vector<at::Tensor> addends(const std::vector<int>& members) const {
    std::vector<at::Tensor> list;
    for (int block : members) {
      if (in_[static_cast<size_t>(block)].defined()) list.push_back(part(block));
    }
    if (list.empty()) list.push_back(part(members.front()));
    const at::ScalarType wide = reduction_dtype(from_.dtype, from_.layout.pending_kind());
    for (at::Tensor& addend : list) addend = addend.to(wide);
    return list;
  }

  /// The interval along `axis` of each member, local or not, where `like` is one of them.
  std::vector<Interval> pieces(const Sharding& sharding, const BlockInfo& like,
                               int64_t axis) const {
    std::vector<Interval> range;
    const Mesh& mesh = sharding.mesh();
    for (size_t d = 0; d < like.group.size(); ++d) {
      range.push_back(group_range(mesh.dim_size(int(d)), sharding.groups[d], like.group[d]));
    }
    std::vector<Interval> list;
    for (int64_t m = 0; m < group_.size(); ++m) {
      int64_t rest = m;
      for (size_t i = step_.dims.size(); i-- > 0;) {
        const size_t d = static_cast<size_t>(step_.dims[i]);
        range[d] =
            group_range(mesh.dim_size(step_.dims[i]), from_.groups[d], rest % from_.groups[d]);
        rest /= from_.groups[d];
      }
      list.push_back(axis_interval(sharding.layout, axis, sharding.shape[size_t(axis)], range));
    }
    return list;
  }

  /// Hands `value` to the blocks of the result that stand where these members stood.
  void give(const std::vector<int>& members, const at::Tensor& value) {
    const Place here = place(from_.blocks[size_t(members.front())].group);
    bool given = false;
    for (size_t b = 0; b < to_.blocks.size(); ++b) {
      if (place(to_.blocks[b].group) != here) continue;
      // Every device has memory of its own under per_device.
      out_[b] = given ? value.clone() : value;
      given = true;
    }
  }

  void slice() {
    for (size_t b = 0; b < to_.blocks.size(); ++b) {
      const BlockInfo& block = to_.blocks[b];
      const int source = from_.block_of(first_coordinates(to_, block));
      at::Tensor piece = in_[static_cast<size_t>(source)];
      const BlockInfo& whole = from_.blocks[static_cast<size_t>(source)];
      // An addend that stood for several devices stays with the first.
      if (!keeps_addend(whole, block)) piece = at::Tensor();
      for (size_t a = 0; piece.defined() && a < block.intervals.size(); ++a) {
        const Interval want = block.intervals[a], have = whole.intervals[a];
        if (!(want == have)) {
          piece = piece.narrow(static_cast<int64_t>(a), want.lo - have.lo, want.size());
        }
      }
      out_[b] = piece;
    }
  }

  bool keeps_addend(const BlockInfo& whole, const BlockInfo& block) const {
    for (size_t d = 0; d < block.group.size(); ++d) {
      if (!(from_.layout.pending_dims() >> d & 1)) continue;
      const int64_t size = from_.mesh().dim_size(static_cast<int>(d));
      if (group_range(size, from_.groups[d], whole.group[d]).lo !=
          group_range(size, to_.groups[d], block.group[d]).lo) {
        return false;
      }
    }
    return true;
  }

  void all_reduce(const std::vector<int>& members) {
    at::Tensor out;
    wait(communicator().all_reduce(group_, from_.layout.pending_kind(), addends(members), out));
    give(members, out.to(from_.dtype));
  }

  void all_gather(const std::vector<int>& members) {
    std::vector<int64_t> counts;
    for (Interval i : pieces(from_, from_.blocks[size_t(members.front())], step_.axis)) {
      counts.push_back(i.size());
    }
    at::Tensor out;
    wait(communicator().all_gather(group_, step_.axis, counts, parts(members), out));
    give(members, out);
  }

  void reduce_scatter(const std::vector<int>& members) {
    const BlockInfo& like = from_.blocks[size_t(members.front())];
    std::vector<Interval> mine = pieces(to_, like, step_.axis);
    const int64_t base = like.intervals[size_t(step_.axis)].lo;
    for (Interval& piece : mine) piece = {piece.lo - base, piece.hi - base};
    std::vector<at::Tensor> out;
    wait(communicator().reduce_scatter(group_, from_.layout.pending_kind(), step_.axis, mine,
                                       addends(members), out));
    for (size_t m = 0; m < members.size(); ++m) {
      give_member(members[m], out[m].to(from_.dtype));
    }
  }

  void all_to_all(const std::vector<int>& members) {
    const BlockInfo& like = from_.blocks[size_t(members.front())];
    const std::vector<Interval> from_pieces = pieces(from_, like, step_.axis);
    const std::vector<Interval> to_pieces = pieces(to_, like, step_.to_axis);
    const int64_t base = like.intervals[size_t(step_.to_axis)].lo;
    std::vector<std::vector<at::Tensor>> send, recv;
    for (size_t i = 0; i < members.size(); ++i) {
      const at::Tensor mine = part(members[i]);
      std::vector<at::Tensor> row, space;
      Shape shape = extents(from_.blocks[size_t(members[i])]);
      shape[size_t(step_.to_axis)] = to_pieces[size_t(group_.local[i])].size();
      for (size_t m = 0; m < to_pieces.size(); ++m) {
        row.push_back(mine.narrow(step_.to_axis, to_pieces[m].lo - base, to_pieces[m].size()));
        shape[size_t(step_.axis)] = from_pieces[m].size();
        const bool remote = group_.owner[m] != communicator().rank();
        space.push_back(remote ? at::empty(shape, options()) : at::Tensor());
      }
      send.push_back(std::move(row));
      recv.push_back(std::move(space));
    }
    wait(communicator().all_to_all(group_, send, recv));
    for (size_t i = 0; i < members.size(); ++i) {
      give_member(members[i], at::cat(recv[i], step_.axis));
    }
  }

  void give_member(int member, const at::Tensor& value) {
    const std::vector<int64_t>& group = from_.blocks[size_t(member)].group;
    for (size_t b = 0; b < to_.blocks.size(); ++b) {
      if (to_.blocks[b].group == group) out_[b] = value;
    }
  }

  Communicator& communicator() const { return communicator_of(from_.mesh()); }

  const Sharding& from_;
  const Blocks& in_;
  const RelayoutStep& step_;
  const Sharding& to_;
  Blocks out_;
  DimMask mask_ = 0;
  Group group_;
};

/// Groups that the policy allows and that suit both sides of the step; a value may have been made
/// under another policy.
Groups groups_of_step(const Sharding& from, const RelayoutStep& step) {
  Groups groups = used_groups(from.layout, from.groups);
  if (step.kind == Kind::slice) {
    const Groups base = groups_for(step.after);
    for (int dim : step.dims) {
      const size_t d = static_cast<size_t>(dim);
      groups[d] = std::max(groups[d], base[d]);
    }
  }
  refine(step.after, groups);
  return groups;
}

}  // namespace

DTensor recut(const DTensor& value, const ShardingPtr& finer) {
  const RelayoutStep nothing{Kind::slice, {}, 0, 0, finer->layout};
  return DTensor(finer, Executor(*value.sharding(), value.blocks(), nothing, *finer).run());
}

DTensor run_step(const DTensor& value, const RelayoutStep& step) {
  ShardingPtr from = value.sharding();
  Blocks blocks = value.blocks();
  const Groups groups = groups_of_step(*from, step);
  if (step.kind != Kind::slice && groups != from->groups) {
    from = intern(from->shape, from->dtype, from->layout, groups);
    blocks = recut(value, from).blocks();
  }
  const ShardingPtr to =
      intern(from->shape, from->dtype, step.after, used_groups(step.after, groups));
  return DTensor(to, Executor(*from, blocks, step, *to).run());
}

}  // namespace tessera
