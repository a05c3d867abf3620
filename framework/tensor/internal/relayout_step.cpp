#include <tessera/framework/tensor/internal/relayout_step.hpp>

#include <algorithm>
#include <map>
#include <span>

#include <ATen/ATen.h>

#include <tessera/framework/base/profile.hpp>
#include <tessera/framework/comm/cross_device.hpp>
#include <tessera/framework/comm/internal/collective_bytes.hpp>
#include <tessera/framework/comm/internal/communicator.hpp>
#include <tessera/framework/comm/internal/device_reducer.hpp>
#include <tessera/framework/comm/internal/thread_state.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>
#include <tessera/framework/comm/reduce_dtype.hpp>
#include <tessera/framework/tensor/device_memory.hpp>
#include <tessera/framework/tensor/internal/placement.hpp>

namespace tessera::detail {
namespace {

using Kind = RelayoutStep::Kind;

using Coordinates = std::vector<int64_t>;

/// Notes a collective over mesh dimensions of `members` devices, and in this thread's comm log the
/// entry that make_entry() returns.
template <class MakeEntry>
void log_collective(int64_t members, const MakeEntry& make_entry) {
  if (members == 1) return;
  thread_state().communicated = true;
  CommLog* const log = CommLogScope::current();
  if (log) log->add(make_entry());
}

/// One step of the relayout of one value.
class RelayoutExecutor {
 public:
  RelayoutExecutor(const ShardingPtr& from, Blocks blocks, const RelayoutStep& step,
                   const ShardingPtr& to)
      : from_ptr_(from),
        to_ptr_(to),
        from_(*from),
        in_(std::move(blocks)),
        step_(step),
        to_(*to),
        out_(to->blocks.size()),
        mask_(mask_of(step.dims)) {}

  CommEntry entry() const { return step_entry(from_.shape, from_.dtype, from_.layout, step_); }
  const Sharding& from() const { return from_; }
  const ShardingPtr& to() const { return to_ptr_; }
  const RelayoutStep& step() const { return step_; }
  const Group& group() const { return group_; }
  /// The number of devices along the step's mesh dimensions.
  int64_t devices() const { return from_.mesh().size_of(mask_); }

  /// Announces the collective of this value, or of several of `shape` elements together.
  void announce(const Shape& shape, int64_t axis) const {
    const Mesh& mesh = from_.mesh();
    if (mesh.is_local() || devices() == 1) return;
    const CommOp op = comm_op(step_.kind);
    const Reduce kind = from_.layout.partial_kind();
    const bool reduces = op == CommOp::all_reduce || op == CommOp::reduce_scatter;
    communicator().begin({.op = op,
                          .mesh = mesh,
                          .dims = mask_,
                          .dtype = reduces ? reduction_dtype(from_.dtype, kind) : from_.dtype,
                          .shape = shape,
                          .kind = kind,
                          .axis = axis,
                          .to_axis = step_.to_axis});
  }

  Blocks run() {
    log_collective(devices(), [this] { return entry(); });
    announce(from_.shape, step_.axis);
    if (!begin()) return std::move(out_);
    for (const auto& [key, members] : members_by_group()) {
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

  /// Prepares the exchange; returns whether this process takes part in it.
  bool begin() {
    if (in_.empty()) return false;
    group_ = make_group(from_.mesh(), step_.dims, from_.groups);
    return true;
  }
  /// Releases the value before the step.
  void drop_inputs() { in_.clear(); }
  Blocks take_results() { return std::move(out_); }

  /// Returns groups of local blocks that differ only in their coordinates along the step's
  /// dimensions, in order.
  std::map<Coordinates, std::vector<int>> members_by_group() const {
    std::map<Coordinates, std::vector<int>> groups;
    for (size_t b = 0; b < from_.blocks.size(); ++b) {
      groups[group_key(from_.blocks[b].group)].push_back(static_cast<int>(b));
    }
    for (auto& [key, blocks] : groups) {
      std::stable_sort(blocks.begin(), blocks.end(), [&](int a, int b) {
        return order(from_.blocks[size_t(a)]) < order(from_.blocks[size_t(b)]);
      });
    }
    return groups;
  }

  /// Returns the device that DeviceMemory counts a block for.
  int64_t device_of(int block) const {
    return from_.blocks[static_cast<size_t>(block)].devices.front();
  }

  GatheredValue gathered_value(const std::vector<int>& members) const {
    GatheredValue value = {step_.axis, {}, block_tensors(members)};
    for (Interval i : member_intervals(from_, from_.blocks[size_t(members.front())], step_.axis)) {
      value.counts.push_back(i.size());
    }
    return value;
  }
  void store_gathered(const std::vector<int>& members, const GatheredValue& value) {
    store(members, in_one_order(value.out));
  }

  ScatteredValue scattered_value(const std::vector<int>& members) const {
    const BlockInfo& like = from_.blocks[size_t(members.front())];
    ScatteredValue value = {step_.axis, member_intervals(to_, like, step_.axis), addends(members)};
    const int64_t base = like.intervals[size_t(step_.axis)].lo;
    for (Interval& part : value.intervals) part = {part.lo - base, part.hi - base};
    return value;
  }
  void store_scattered(const std::vector<int>& members, const ScatteredValue& value) {
    for (size_t m = 0; m < members.size(); ++m) {
      store_member(members[m], stored(value.out[m]));
    }
  }

 private:
  /// Returns a result, with world_size_invariant in row-major order. That is how engines make it;
  /// inside a process it may keep the order of its inputs, and kernels that read it may round in
  /// the order of memory.
  at::Tensor in_one_order(const at::Tensor& result) const {
    return group_.tree ? result.contiguous() : result;
  }

  /// Returns the result of a reduction in the value's dtype.
  at::Tensor stored(const at::Tensor& result) const { return in_one_order(result).to(from_.dtype); }

  Coordinates group_key(Coordinates group) const {
    for (int dim : step_.dims) group[static_cast<size_t>(dim)] = 0;
    return group;
  }

  Coordinates order(const BlockInfo& block) const {
    Coordinates coordinates;
    for (int dim : step_.dims) coordinates.push_back(block.group[static_cast<size_t>(dim)]);
    return coordinates;
  }

  at::TensorOptions options(int block) const {
    return block_options(from_, from_.blocks[static_cast<size_t>(block)]);
  }

  at::Tensor block_tensor(int block) const {
    const at::Tensor& tensor = in_[static_cast<size_t>(block)];
    if (tensor.defined()) return tensor;
    const DeviceMemory::For memory(device_of(block));
    return reduce_identity(from_.layout.partial_kind(),
                           extents(from_.blocks[size_t(block)].intervals), options(block));
  }

  /// Returns the members' blocks, on the first member's device.
  std::vector<at::Tensor> block_tensors(const std::vector<int>& members) const {
    std::vector<at::Tensor> list;
    const c10::Device device = options(members.front()).device();
    for (int block : members) list.push_back(moved_to(block_tensor(block), device));
    return list;
  }

  /// Returns the members' defined partial sums, on the first member's device; at least one, so that
  /// every process takes part. A reduction in tree order gets undefined tensors for the others.
  std::vector<at::Tensor> addends(const std::vector<int>& members) const {
    std::vector<at::Tensor> list;
    const at::ScalarType wide = reduction_dtype(from_.dtype, from_.layout.partial_kind());
    const c10::Device device = options(members.front()).device();
    const auto add = [&](int block) {
      const DeviceMemory::For memory(device_of(block));
      list.push_back(moved_to(block_tensor(block), device).to(wide));
    };
    bool any = false;
    for (int block : members) {
      const bool here = in_[static_cast<size_t>(block)].defined();
      if (here) add(block);
      if (!here && group_.tree) list.emplace_back();
      any = any || here;
    }
    if (any) return list;
    if (!group_.tree) {
      add(members.front());
      return list;
    }
    const int first = members.front();
    const DeviceMemory::For memory(device_of(first));
    list.front() = tree_identity(from_.layout.partial_kind(),
                                 extents(from_.blocks[static_cast<size_t>(first)].intervals),
                                 options(first).dtype(wide));
    return list;
  }

  /// Returns the interval along `axis` of each member, local or not, of the group that `like` is
  /// in.
  std::vector<Interval> member_intervals(const Sharding& sharding, const BlockInfo& like,
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

  /// Stores `result` in the result's blocks for these members.
  void store(const std::vector<int>& members, const at::Tensor& result) {
    // A result that is one input may be a view with gaps. ATen may compute such a tensor by other
    // instructions than its copies without gaps, and replicas would differ in their last bits.
    const at::Tensor value = result.is_non_overlapping_and_dense() ? result : result.contiguous();
    const Coordinates key = group_key(from_.blocks[size_t(members.front())].group);
    bool stored = false;
    for (size_t b = 0; b < to_.blocks.size(); ++b) {
      if (group_key(to_.blocks[b].group) != key) continue;
      const c10::Device device = block_device(to_.mesh(), to_.blocks[b]);
      if (device != value.device()) {
        out_[b] = moved_to(value, device);
        continue;
      }
      // Under per_device every device has its own memory.
      const DeviceMemory::For memory(to_.blocks[b].devices.front());
      out_[b] = stored ? value.clone() : value;
      stored = true;
    }
  }

  /// All-reduces on GPUs, where every device has its own block, of the result too.
  void all_reduce_each(const std::vector<int>& members, DeviceReducer& reducer) {
    const Reduce kind = from_.layout.partial_kind();
    std::vector<at::Tensor> each;
    for (int block : members) {
      each.push_back(block_tensor(block).to(reduction_dtype(from_.dtype, kind)));
    }
    each = reducer.all_reduce_each(kind, each);
    for (size_t m = 0; m < members.size(); ++m) {
      store_member(members[m], each[m].to(from_.dtype));
    }
  }

  void all_reduce(const std::vector<int>& members) {
    DeviceReducer* reducer = device_reducer(communicator());
    // NCCL's own reductions are in no tree order.
    if (reducer && on_gpus(from_.mesh()) && !group_.tree) return all_reduce_each(members, *reducer);
    // The result counts for the first member; store() clones it for the others.
    const DeviceMemory::For memory(device_of(members.front()));
    at::Tensor out;
    wait(communicator().all_reduce(group_, from_.layout.partial_kind(), addends(members), out));
    store(members, stored(out));
  }

  void all_gather(const std::vector<int>& members) {
    GatheredValue value = gathered_value(members);
    const DeviceMemory::For memory(device_of(members.front()));
    wait(communicator().all_gather(group_, std::span(&value, 1)));
    store_gathered(members, value);
  }

  void reduce_scatter(const std::vector<int>& members) {
    ScatteredValue value = scattered_value(members);
    const bool per_device = block_policy() == BlockPolicy::per_device;
    if (per_device && group_.is_local() && !on_gpus(from_.mesh())) {
      return reduce_own_shards(members, value);
    }
    const DeviceMemory::For memory(device_of(members.front()));
    wait(communicator().reduce_scatter(group_, from_.layout.partial_kind(), std::span(&value, 1)));
    store_scattered(members, value);
  }

  /// Reduce-scatters without a full sum on any device: each device reduces its own shard only.
  void reduce_own_shards(const std::vector<int>& members, const ScatteredValue& value) {
    const std::vector<at::Tensor>& all = value.inputs;
    const ProfileSpan span(SpanKind::collective, "reduce_scatter", reduced_bytes(all));
    for (size_t m = 0; m < members.size(); ++m) {
      const DeviceMemory::For memory(device_of(members[m]));
      const Interval piece = value.intervals[size_t(group_.local[m])];
      std::vector<at::Tensor> here;
      int64_t count = 0;
      for (const at::Tensor& addend : all) {
        count += addend.defined() ? 1 : 0;
        here.push_back(addend.defined() ? addend.narrow(step_.axis, piece.lo, piece.size())
                                        : addend);
      }
      at::Tensor out;
      wait(communicator().all_reduce(group_, from_.layout.partial_kind(), here, out));
      // The sum of one tensor is a view of that tensor; the view would keep all of it alive.
      if (count == 1) out = out.clone();
      store_member(members[m], stored(out));
    }
  }

  void all_to_all(const std::vector<int>& members) {
    const BlockInfo& like = from_.blocks[size_t(members.front())];
    const std::vector<Interval> from_intervals = member_intervals(from_, like, step_.axis);
    const std::vector<Interval> to_intervals = member_intervals(to_, like, step_.to_axis);
    const int64_t base = like.intervals[size_t(step_.to_axis)].lo;
    std::vector<std::vector<at::Tensor>> send, recv;
    for (size_t i = 0; i < members.size(); ++i) {
      const DeviceMemory::For memory(device_of(members[i]));
      const at::TensorOptions here = options(members[i]);
      const at::Tensor mine = block_tensor(members[i]);
      std::vector<at::Tensor> send_row, recv_row;
      Shape shape = extents(from_.blocks[size_t(members[i])].intervals);
      shape[size_t(step_.to_axis)] = to_intervals[size_t(group_.local[i])].size();
      for (size_t m = 0; m < to_intervals.size(); ++m) {
        send_row.push_back(
            mine.narrow(step_.to_axis, to_intervals[m].lo - base, to_intervals[m].size()));
        shape[size_t(step_.axis)] = from_intervals[m].size();
        const bool remote = group_.owner[m] != communicator().rank();
        recv_row.push_back(remote ? at::empty(shape, here) : at::Tensor());
      }
      send.push_back(std::move(send_row));
      recv.push_back(std::move(recv_row));
    }
    wait(communicator().all_to_all(group_, send, recv));
    for (size_t i = 0; i < members.size(); ++i) {
      const DeviceMemory::For memory(device_of(members[i]));
      for (at::Tensor& piece : recv[i]) piece = moved_to(piece, options(members[i]).device());
      store_member(members[i], in_one_order(at::cat(recv[i], step_.axis)));
    }
  }

  void store_member(int member, const at::Tensor& value) {
    const std::vector<int64_t>& group = from_.blocks[size_t(member)].group;
    for (size_t b = 0; b < to_.blocks.size(); ++b) {
      if (to_.blocks[b].group == group) {
        out_[b] = moved_to(value, block_device(to_.mesh(), to_.blocks[b]));
      }
    }
  }

  Communicator& communicator() const { return communicator_of(from_.mesh()); }

  ShardingPtr from_ptr_, to_ptr_;
  const Sharding& from_;
  Blocks in_;
  RelayoutStep step_;
  const Sharding& to_;
  Blocks out_;
  DimMask mask_ = 0;
  Group group_;
};

/// Returns groups that the policy allows and that suit both sides of the step; a value may have
/// been made under another policy.
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

DimMask mask_of(const std::vector<int>& dims) {
  DimMask mask = 0;
  for (int dim : dims) mask |= 1u << dim;
  return mask;
}

std::vector<int> dims_of(DimMask mask) {
  std::vector<int> dims;
  for (int d = 0; d < 32; ++d) {
    if (mask >> d & 1) dims.push_back(d);
  }
  return dims;
}

DTensor split_blocks(const DTensor& value, const ShardingPtr& finer) {
  return DTensor(finer, slice_blocks(*value.sharding(), value.blocks(), *finer));
}

namespace {

/// Returns the executor of a step other than a slice.
RelayoutExecutor executor_of(const DTensor& value, const RelayoutStep& step) {
  const Sharding& now = *value.sharding();
  const Groups groups = groups_of_step(now, step);
  const ShardingPtr from =
      groups == now.groups ? value.sharding() : intern(now.shape, now.dtype, now.layout, groups);
  const DTensor split = groups == now.groups ? value : split_blocks(value, from);
  const ShardingPtr to =
      intern(from->shape, from->dtype, step.after, used_groups(step.after, groups));
  return RelayoutExecutor(from, split.blocks(), step, to);
}

}  // namespace

DTensor run_step(const DTensor& value, const RelayoutStep& step) {
  if (step.kind == Kind::slice) {
    const Sharding& from = *value.sharding();
    const ShardingPtr to = intern(from.shape, from.dtype, step.after,
                                  used_groups(step.after, groups_of_step(from, step)));
    return DTensor(to, slice_blocks(from, value.blocks(), *to));
  }
  RelayoutExecutor executor = executor_of(value, step);
  return DTensor(executor.to(), executor.run());
}

/// The steps of the values, and what they exchange.
struct JointStep::State {
  std::vector<RelayoutExecutor> executors;
  struct Exchange {
    std::vector<int> members;  ///< blocks of each value, which have the same structure
    std::vector<GatheredValue> gathered = {};
    std::vector<ScatteredValue> scattered = {};
    WorkPtr work = {};
  };
  std::vector<Exchange> exchanges;
};

JointStep::JointStep() : state_(std::make_unique<State>()) {}
JointStep::~JointStep() = default;
JointStep::JointStep(JointStep&&) noexcept = default;
JointStep& JointStep::operator=(JointStep&&) noexcept = default;

bool JointStep::fits(const DTensor& value, const RelayoutStep& step) const {
  if (step.kind != Kind::all_gather && step.kind != Kind::reduce_scatter) return false;
  if (state_->executors.empty()) return true;
  const RelayoutExecutor& first = state_->executors[0];
  const Sharding &theirs = first.from(), &mine = *value.sharding();
  return first.step().kind == step.kind && first.step().dims == step.dims &&
         theirs.mesh() == mine.mesh() && theirs.dtype == mine.dtype &&
         theirs.layout.partial_kind() == mine.layout.partial_kind() &&
         theirs.groups == groups_of_step(mine, step);
}

void JointStep::add(const DTensor& value, const RelayoutStep& step) {
  state_->executors.push_back(executor_of(value, step));
}

void JointStep::start() {
  std::vector<RelayoutExecutor>& executors = state_->executors;
  const RelayoutExecutor& first = executors[0];
  log_collective(first.devices(), [&executors] {
    CommEntry entry = executors[0].entry();
    for (size_t v = 1; v < executors.size(); ++v) {
      const CommEntry more = executors[v].entry();
      entry.bytes += more.bytes;
      entry.received += more.received;
    }
    return entry;
  });
  if (executors.size() == 1) {
    first.announce(first.from().shape, first.step().axis);
  } else {
    int64_t elements = 0;
    for (const RelayoutExecutor& executor : executors) elements += numel(executor.from().shape);
    first.announce({elements}, 0);
  }
  for (RelayoutExecutor& executor : executors) {
    if (!executor.begin()) return;
  }
  Communicator& communicator = communicator_of(first.from().mesh());
  for (const auto& [key, members] : first.members_by_group()) {
    State::Exchange exchange{members};
    const DeviceMemory::For memory(first.device_of(members.front()));
    if (first.step().kind == Kind::all_gather) {
      for (const RelayoutExecutor& executor : executors) {
        exchange.gathered.push_back(executor.gathered_value(members));
      }
      exchange.work = communicator.all_gather(first.group(), exchange.gathered);
    } else {
      for (const RelayoutExecutor& executor : executors) {
        exchange.scattered.push_back(executor.scattered_value(members));
      }
      const Reduce kind = first.from().layout.partial_kind();
      exchange.work = communicator.reduce_scatter(first.group(), kind, exchange.scattered);
    }
    // The exchange keeps what it still reads.
    for (GatheredValue& value : exchange.gathered) value.inputs.clear();
    for (ScatteredValue& value : exchange.scattered) value.inputs.clear();
    state_->exchanges.push_back(std::move(exchange));
  }
  for (RelayoutExecutor& executor : executors) executor.drop_inputs();
}

bool JointStep::done() const {
  return std::all_of(state_->exchanges.begin(), state_->exchanges.end(),
                     [](const auto& exchange) { return !exchange.work || exchange.work->done(); });
}

void JointStep::wait() {
  for (State::Exchange& exchange : state_->exchanges) detail::wait(exchange.work);
}

std::vector<DTensor> JointStep::finish() {
  wait();
  std::vector<RelayoutExecutor>& executors = state_->executors;
  for (const State::Exchange& exchange : state_->exchanges) {
    const DeviceMemory::For memory(executors[0].device_of(exchange.members.front()));
    for (size_t v = 0; v < executors.size(); ++v) {
      if (exchange.scattered.empty()) {
        executors[v].store_gathered(exchange.members, exchange.gathered[v]);
      } else {
        executors[v].store_scattered(exchange.members, exchange.scattered[v]);
      }
    }
  }
  std::vector<DTensor> results;
  for (RelayoutExecutor& executor : executors) {
    results.emplace_back(executor.to(), executor.take_results());
  }
  *state_ = State();
  return results;
}

namespace {

std::vector<int64_t> first_coordinates(const Sharding& sharding, const BlockInfo& block) {
  std::vector<int64_t> at;
  const Mesh& mesh = sharding.mesh();
  for (size_t d = 0; d < block.group.size(); ++d) {
    const int64_t size = mesh.dim_size(static_cast<int>(d));
    // A dimension that is unused has one group, which may begin in another process.
    at.push_back(
        std::max(mesh.local_box()[d].lo, group_range(size, sharding.groups[d], block.group[d]).lo));
  }
  return at;
}

/// Whether this block of the result receives the source block's partial sum.
bool keeps_addend(const Sharding& from, const BlockInfo& source, const Sharding& to,
                  const BlockInfo& block) {
  for (size_t d = 0; d < block.group.size(); ++d) {
    if (!(from.layout.partial_dims() >> d & 1)) continue;
    const int64_t size = from.mesh().dim_size(static_cast<int>(d));
    if (group_range(size, from.groups[d], source.group[d]).lo !=
        group_range(size, to.groups[d], block.group[d]).lo) {
      return false;
    }
  }
  return true;
}

}  // namespace

Blocks slice_blocks(const Sharding& from, const Blocks& blocks, const Sharding& to) {
  Blocks out;
  for (const BlockInfo& block : to.blocks) {
    const auto index = static_cast<size_t>(from.block_of(first_coordinates(to, block)));
    const BlockInfo& source = from.blocks[index];
    at::Tensor piece = blocks[index];
    // A partial sum that stood for several devices stays with the first.
    if (!keeps_addend(from, source, to, block)) piece = at::Tensor();
    for (size_t a = 0; piece.defined() && a < block.intervals.size(); ++a) {
      const Interval want = block.intervals[a], have = source.intervals[a];
      if (want == have) continue;
      piece = piece.narrow(static_cast<int64_t>(a), want.lo - have.lo, want.size());
    }
    out.push_back(std::move(piece));
  }
  return out;
}

}  // namespace tessera::detail
