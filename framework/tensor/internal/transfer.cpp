#include <tessera/framework/tensor/internal/transfer.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/mesh/internal/view.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/abstract.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>
#include <tessera/framework/tensor/internal/relayout.hpp>

namespace tessera::detail {
namespace {

using Region = std::vector<Interval>;
using Axes = std::vector<std::vector<int>>;

bool are_views_of_one(const Mesh& a, const Mesh& b) { return a.root() == b.root(); }

bool is_empty(const Region& region) {
  return std::any_of(region.begin(), region.end(), [](Interval i) { return i.empty(); });
}

bool contains(const Region& outer, const Region& inner) {
  for (size_t a = 0; a < inner.size(); ++a) {
    if (!(intersect(outer[a], inner[a]) == inner[a])) return false;
  }
  return true;
}

Region common_part(const Region& a, const Region& b) {
  Region common;
  for (size_t i = 0; i < a.size(); ++i) common.push_back(intersect(a[i], b[i]));
  return common;
}

/// Returns the elements of a device's shard.
Region shard_of(const Shape& shape, const Layout& layout, int64_t device) {
  Region at, shard;
  for (int64_t i : layout.mesh().coordinates(device)) at.push_back({i, i + 1});
  for (int64_t a = 0; a < layout.rank(); ++a) {
    shard.push_back(axis_interval(layout, a, shape[static_cast<size_t>(a)], at));
  }
  return shard;
}

at::Tensor narrowed(at::Tensor tensor, const Region& have, const Region& want) {
  for (size_t a = 0; a < want.size(); ++a) {
    if (have[a] == want[a]) continue;
    tensor = tensor.narrow(static_cast<int64_t>(a), want[a].lo - have[a].lo, want[a].size());
  }
  return tensor;
}

/// The devices of a mesh, by the shard that they hold.
class Holders {
 public:
  Holders(const Shape& shape, const Layout& layout) {
    for (int64_t id : device_ids(layout.mesh())) {
      const Region shard = shard_of(shape, layout, id);
      if (is_empty(shard)) continue;
      const auto at = std::find_if(shards_.begin(), shards_.end(),
                                   [&](const auto& it) { return it.first == shard; });
      if (at != shards_.end()) {
        at->second.push_back(id);
      } else {
        shards_.push_back({shard, {id}});
      }
    }
  }
  /// The distinct shards that are not empty, with their devices.
  const std::vector<std::pair<Region, std::vector<int64_t>>>& shards() const { return shards_; }

 private:
  std::vector<std::pair<Region, std::vector<int64_t>>> shards_;
};

/// Plans what the devices of one mesh send to another's.
class TransferPlanner {
 public:
  TransferPlanner(const Shape& shape, const Layout& from, const Layout& to)
      : shape_(shape), from_(from), to_(to), views_(are_views_of_one(from.mesh(), to.mesh())) {}

  std::vector<TransferPiece> plan() {
    const Mesh& mesh = to_.mesh();
    const std::vector<int64_t> ids = device_ids(mesh);
    // A mesh without a communicator is one of each process.
    const bool each = !mesh.communicator() && from_.mesh().communicator();
    const int processes = each ? communicator_of(from_.mesh()).size() : 1;
    for (int rank = 0; rank < processes; ++rank) {
      for (size_t i = 0; i < ids.size(); ++i) {
        add(ids[i], each ? rank : owner_of(mesh, ids[i]), i);
      }
    }
    return std::move(pieces_);
  }

 private:
  int owner_of_source(int64_t source, int target_rank) const {
    return from_.mesh().communicator() ? owner_of(from_.mesh(), source) : target_rank;
  }

  /// Returns the device of `from` whose coordinates are those of a device of `to`, but for those
  /// that a view fixes.
  int64_t opposite(int64_t target) const {
    std::vector<int64_t> at = to_.mesh().coordinates(target);
    for (size_t d = 0; d < at.size(); ++d) {
      if (from_.mesh().fixed_dims() >> d & 1) at[d] = from_.mesh().box()[d].lo;
    }
    return from_.mesh().id(at);
  }

  void push(int64_t source, int64_t target, int to, Region region) {
    pieces_.push_back({source, target, owner_of_source(source, to), to, std::move(region)});
  }

  /// `index`: the number of the target, by which replicas are shared out.
  void add(int64_t target, int rank, size_t index) {
    const Region need = shard_of(shape_, to_, target);
    if (is_empty(need) || !asked_.insert({rank, key_of(need)}).second) return;
    if (views_) {
      const int64_t source = opposite(target);
      if (contains(shard_of(shape_, from_, source), need)) return push(source, target, rank, need);
    }
    if (!holders_) holders_.emplace(shape_, from_);
    int64_t found = 0;
    for (const auto& [shard, devices] : holders_->shards()) {
      const Region common = common_part(shard, need);
      if (is_empty(common)) continue;
      push(nearest(devices, target, rank, index), target, rank, common);
      found += numel(extents(common));
    }
    if (found == numel(extents(need))) return;
    throw MeshError("transfer",
                    str("the devices of mesh ", from_.mesh().describe(),
                        " have all that those of mesh ", to_.mesh().describe(), " need"),
                    str("layout ", from_.describe(), " to ", to_.describe()),
                    "join the parts of the value on the whole mesh first");
  }

  int64_t nearest(const std::vector<int64_t>& devices, int64_t target, int rank,
                  size_t index) const {
    if (views_ && std::find(devices.begin(), devices.end(), target) != devices.end()) return target;
    for (int64_t device : devices) {
      if (owner_of_source(device, rank) == rank) return device;
    }
    return devices[index % devices.size()];
  }

  static std::vector<int64_t> key_of(const Region& region) {
    std::vector<int64_t> key;
    for (Interval i : region) key.insert(key.end(), {i.lo, i.hi});
    return key;
  }

  const Shape& shape_;
  const Layout &from_, &to_;
  const bool views_;
  std::optional<Holders> holders_;
  std::set<std::pair<int, std::vector<int64_t>>> asked_;  ///< by rank
  std::vector<TransferPiece> pieces_;
};

/// Returns the dimensions of which both views have the same one coordinate.
DimMask commonly_fixed(const Mesh& a, const Mesh& b) {
  if (!are_views_of_one(a, b)) return 0;
  DimMask common = a.fixed_dims() & b.fixed_dims();
  for (size_t d = 0; d < a.box().size(); ++d) {
    if (!(a.box()[d] == b.box()[d])) common &= ~(DimMask{1} << d);
  }
  return common;
}

/// Returns the layout of `mesh`, a view of the mesh of `layout` or the other way round, with the
/// same axes.
Layout on_view(const Layout& layout, const Mesh& mesh) {
  return Layout::from_axes(mesh, layout.axes(), layout.partial_dims(), layout.partial_kind());
}

/// Whether a value on `mesh` in layout `from` can be moved to these axes without leaving the mesh:
/// what a view has one coordinate of cannot be gathered.
bool is_reachable(const Layout& from, const Layout& to) {
  const DimMask fixed = from.mesh().fixed_dims();
  for (int64_t a = 0; a < from.rank(); ++a) {
    std::vector<int> have, want;
    for (int dim : from.axis(a)) {
      if (fixed >> dim & 1) have.push_back(dim);
    }
    for (int dim : to.axis(a)) {
      if (fixed >> dim & 1) want.push_back(dim);
    }
    if (have != want) return false;
  }
  return true;
}

/// Reduces a partial sum on its mesh, except over dimensions that the target is a partial sum over.
DTensor reduced(const DTensor& value, const Layout& arriving) {
  const Layout& from = value.layout();
  const DimMask kept = from.partial_dims() & arriving.partial_dims();
  if (from.partial_dims() == kept) return value;
  const Layout there = on_view(arriving, from.mesh());
  const bool scatters = are_views_of_one(from.mesh(), arriving.mesh()) && is_reachable(from, there);
  return relayout_value(value, scatters ? there : from.with_partial(kept, from.partial_kind()));
}

void check_transfer_target(const DTensor& value, const Layout& layout) {
  if (!layout.defined() || layout.rank() != value.rank()) {
    throw LayoutError("transfer", "a layout names every axis of its tensor",
                      layout.describe() + " for shape " + tessera::to_string(value.shape()),
                      str("give it ", value.rank(), " entries"));
  }
  const Layout& from = value.layout();
  const DimMask fixed = from.partial_dims() & from.mesh().fixed_dims();
  const DimMask common = commonly_fixed(from.mesh(), layout.mesh());
  if (layout.partial_dims() == fixed && (fixed & ~common) == 0) return;
  throw LayoutError("transfer",
                    "a partial sum over dimensions that a view fixes stays one, at the same "
                    "coordinates",
                    str(from.describe(), " on mesh ", from.mesh().describe(), " to ",
                        layout.describe(), " on mesh ", layout.mesh().describe()),
                    "add the partial sums up before");
}

/// The bytes that a device receives from others, at most.
int64_t received_by_device(const std::vector<TransferPiece>& pieces, const Sharding& sharding) {
  std::map<int64_t, int64_t> bytes;
  int64_t most = 0;
  for (const TransferPiece& piece : pieces) {
    if (piece.source == piece.target) continue;
    int64_t& sum = bytes[piece.target];
    sum += numel(extents(piece.region)) * static_cast<int64_t>(c10::elementSize(sharding.dtype));
    most = std::max(most, sum);
  }
  return most;
}

/// Returns the dimensions along which two meshes differ: those that only one view fixes, or at
/// another coordinate.
DimMask crossed_dims(const Mesh& from, const Mesh& to) {
  if (!are_views_of_one(from, to)) return 0;
  return (from.fixed_dims() | to.fixed_dims()) & ~commonly_fixed(from, to);
}

/// Logs that a value is joined on its mesh, as it is where each process holds all of both meshes:
/// what is sent depends on the processes, and the log does not.
void log_joining(const Sharding& to, const Layout& from) {
  Layout now = from;
  for (const RelayoutStep& step :
       plan_relayout(from, Layout::replicated(from.mesh(), from.rank()))) {
    CommEntry entry = step_entry(to.shape, to.dtype, now, step);
    now = step.after;
    if (entry.members == 1) continue;
    thread_state().communicated = true;
    if (CommLog* const log = CommLogScope::current()) log->add(std::move(entry));
  }
}

void log_transfer(const std::vector<TransferPiece>& pieces, const Layout& from,
                  const Sharding& to) {
  const bool views = are_views_of_one(from.mesh(), to.mesh());
  if (!views) return log_joining(to, from);
  const int64_t bytes = received_by_device(pieces, to);
  if (bytes == 0) return;
  thread_state().communicated = true;
  CommLog* const log = CommLogScope::current();
  if (!log) return;
  const std::string dims = to.mesh().names(crossed_dims(from.mesh(), to.mesh()));
  log->add({CommOp::transfer, dims, 2, bytes, received_bytes(CommOp::transfer, double(bytes), 2)});
}

/// The communicator through which devices of both meshes reach each other.
Communicator& communicator_of(const Mesh& from, const Mesh& to) {
  return detail::communicator_of(from.communicator() ? from : to);
}

}  // namespace

std::vector<TransferPiece> plan_transfer(const Shape& shape, const Layout& from, const Layout& to) {
  return TransferPlanner(shape, from, to).plan();
}

Layout arriving_layout(const Shape& shape, const Layout& from, const Layout& to) {
  const Mesh& mesh = to.mesh();
  const DimMask crossed = crossed_dims(from.mesh(), mesh);
  if (crossed == 0) return to;
  if ((from.mesh().fixed_dims() & crossed) == 0) {
    // Each device of the target has its shard of the value already.
    const Layout here = Layout::from_axes(mesh, from.axes(), to.partial_dims(), to.partial_kind());
    return is_reachable(here, to) ? here : to;
  }
  std::vector<int> shared;
  int64_t devices = 1;
  for (int d = 0; d < mesh.rank(); ++d) {
    if (((to.used_dims() | mesh.fixed_dims() | crossed) >> d & 1) || mesh.dim_size(d) == 1)
      continue;
    shared.push_back(d);
    devices *= mesh.dim_size(d);
  }
  if (shared.empty()) return to;
  std::optional<Layout> first;
  for (int64_t a = 0; a < to.rank(); ++a) {
    if (shape[static_cast<size_t>(a)] < to.num_shards(a) * devices) continue;
    Axes axes = to.axes();
    std::vector<int>& dims = axes[static_cast<size_t>(a)];
    dims.insert(dims.end(), shared.begin(), shared.end());
    Layout candidate = Layout::from_axes(mesh, axes, to.partial_dims(), to.partial_kind());
    // The value may be sharded so already.
    if (axes == from.axes()) return candidate;
    if (!first) first = std::move(candidate);
  }
  return first.value_or(to);
}

ValueTransfer::ValueTransfer(const DTensor& value, const Layout& layout)
    : layout_(abstract_layout(layout)) {
  if (value.mesh() == layout_.mesh()) {
    result_ = relayout_value(value, layout_);
    return;
  }
  check_transfer_target(value, layout_);
  const c10::InferenceMode inference;
  const Layout arriving = arriving_layout(value.shape(), value.layout(), layout_);
  arriving_ = intern(value.shape(), value.dtype(), arriving);
  start(reduced(value, arriving));
}

void ValueTransfer::start(const DTensor& value) {
  const ProfileSpan span(SpanKind::op, "transfer");
  const Layout& from = value.layout();
  const Layout& to = arriving_->layout;
  const std::vector<TransferPiece> all = plan_transfer(value.shape(), from, to);
  log_transfer(all, from, *arriving_);
  if (is_abstract()) return;
  Communicator& communicator = communicator_of(from.mesh(), to.mesh());
  source_ = value;
  const int me = communicator.rank();
  std::vector<Message> sends, recvs;
  const auto held = [&](const TransferPiece& piece) {
    const auto block = value.sharding()->block_of(from.mesh().coordinates(piece.source));
    const auto index = static_cast<size_t>(block);
    const at::Tensor& tensor = value.blocks()[index];
    if (tensor.defined()) {
      return narrowed(tensor, value.sharding()->blocks[index].intervals, piece.region);
    }
    // A partial sum of which this device holds nothing.
    return reduce_identity(from.partial_kind(), extents(piece.region),
                           block_options(*value.sharding(), value.sharding()->blocks[index]));
  };
  for (const TransferPiece& piece : all) {
    if (piece.from == me && piece.to != me) sends.push_back({piece.to, held(piece)});
    if (piece.to != me) continue;
    pieces_.push_back(piece);
    if (piece.from == me) {
      received_.push_back(held(piece));
      continue;
    }
    const std::vector<int64_t>& ids = to.mesh().local_ids();
    const auto device = std::find(ids.begin(), ids.end(), piece.target) - ids.begin();
    const DeviceMemory::For memory(device);
    const auto block = arriving_->block_of(to.mesh().coordinates(piece.target));
    received_.push_back(
        at::empty(extents(piece.region),
                  block_options(*arriving_, arriving_->blocks[static_cast<size_t>(block)])));
    recvs.push_back({piece.from, received_.back()});
  }
  if (!recvs.empty()) source_ = DTensor();
  if (sends.empty() && recvs.empty()) return;
  work_ = communicator.exchange({.op = CommOp::transfer,
                                 .mesh = to.mesh(),
                                 .dims = crossed_dims(from.mesh(), to.mesh()),
                                 .dtype = arriving_->dtype,
                                 .shape = arriving_->shape},
                                sends, recvs);
}

at::Tensor ValueTransfer::assemble(const BlockInfo& block) const {
  const DeviceMemory::For memory(block.devices.front());
  const at::TensorOptions options = block_options(*arriving_, block);
  at::Tensor out;
  // Devices that share memory need no copy of a block of several shards.
  const bool shares = source_.defined() && !block.empty &&
                      block_policy() != BlockPolicy::per_device && !arriving_->layout.is_partial();
  for (size_t b = 0; shares && b < source_.blocks().size(); ++b) {
    const Region& have = source_.sharding()->blocks[b].intervals;
    const at::Tensor& tensor = source_.blocks()[b];
    if (!tensor.defined() || !contains(have, block.intervals)) continue;
    return moved_to(narrowed(tensor, have, block.intervals), options.device()).contiguous();
  }
  for (size_t p = 0; p < pieces_.size() && !block.empty; ++p) {
    const Region& region = pieces_[p].region;
    if (contains(region, block.intervals)) {
      const at::Tensor piece = narrowed(received_[p], region, block.intervals);
      const at::Tensor moved = moved_to(piece, options.device());
      // A real device would have its own copy, and what a collective reads has no gaps.
      const bool copied = block_policy() == BlockPolicy::per_device && moved.is_same(piece);
      return copied ? moved.clone(at::MemoryFormat::Contiguous) : moved.contiguous();
    }
    const Region common = common_part(region, block.intervals);
    if (is_empty(common)) continue;
    if (!out.defined()) out = at::empty(extents(block.intervals), options);
    narrowed(out, block.intervals, common).copy_(narrowed(received_[p], region, common));
  }
  return out.defined() ? out : at::empty(extents(block.intervals), options);
}

DTensor ValueTransfer::finish() {
  if (result_.defined()) return result_;
  const c10::InferenceMode inference;
  wait(work_);
  Blocks blocks;
  for (const BlockInfo& block : arriving_->blocks) blocks.push_back(assemble(block));
  received_.clear();
  source_ = DTensor();
  result_ = DTensor(arriving_, std::move(blocks));
  result_ = relayout_to(result_, intern(arriving_->shape, arriving_->dtype, layout_));
  return result_;
}

DTensor transfer_value(const DTensor& value, const Layout& layout) {
  return ValueTransfer(value, layout).finish();
}

}  // namespace tessera::detail
