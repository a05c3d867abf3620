#include <tessera/framework/comm/cpu/p2p_engine.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/hash.hpp>
#include <tessera/framework/comm/cpu/collective_queue.hpp>
#include <tessera/framework/comm/cpu/result_buffers.hpp>
#include <tessera/framework/comm/cpu/transfer_lane.hpp>
#include <tessera/framework/comm/cpu/tree_reduce_task.hpp>
#include <tessera/framework/comm/internal/scattered_parts.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>

namespace tessera::detail {
namespace {

/// The ranks of a group, and the position of this one.
struct Ranks {
  explicit Ranks(const Group& group, int me) : list(group.owner) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    mine = static_cast<size_t>(std::find(list.begin(), list.end(), me) - list.begin());
  }
  std::vector<int> list;
  size_t mine = 0;
};

at::Tensor flat(const at::Tensor& tensor) { return tensor.contiguous().view(-1); }

enum class TagKind : uint64_t { reduce, gather, scatter, exchange };

class P2pEngine final : public Engine {
 public:
  explicit P2pEngine(std::unique_ptr<Transport> transport)
      : queue_(std::make_shared<CollectiveQueue>(std::move(transport))),
        local_(local_communicator()),
        lane_(std::make_unique<TransferLane>(
            queue_->transport().apart(),
            [queue = queue_](const std::string& line) { queue->fail(line); })) {
    queue_->open();
  }
  ~P2pEngine() override { queue_->close(); }

  std::string name() const override { return transport().name(); }
  int rank() const override { return transport().rank(); }
  int size() const override { return transport().size(); }

  void set_call(uint64_t call) override {
    call_ = call;
    counts_.clear();
  }

  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs,
                     at::Tensor& out) override;
  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override;
  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override;
  WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                     std::vector<std::vector<at::Tensor>>& recv) override;
  WorkPtr exchange(const CollectiveCall& call, const std::vector<Message>& sends,
                   const std::vector<Message>& recvs) override {
    queue_->check();
    return lane_->exchange(describe_transfer(call), sends, recvs);
  }
  void flush() override {
    lane_->flush();
    transport().flush();
  }
  void abort(const std::string& reason) override { queue_->abort(reason); }

 private:
  Transport& transport() const { return queue_->transport(); }

  /// Returns a tag that differs between collectives and is equal on all participating ranks.
  uint64_t next_tag(TagKind kind, const Ranks& ranks) {
    uint64_t key = mix(call_, static_cast<uint64_t>(kind));
    for (int r : ranks.list) key = mix(key, static_cast<uint64_t>(r));
    return mix(key, counts_[key]++);
  }

  std::unique_ptr<ExchangeTask> make_exchange(TagKind kind, const Ranks& ranks) {
    return std::make_unique<ExchangeTask>(transport(), next_tag(kind, ranks));
  }

  template <class Task, class Buffers>
  WorkPtr push_reduce(TagKind kind, const Ranks& ranks, Buffers buffers, bool brief) {
    buffers.ranks = ranks.list;
    buffers.me = ranks.mine;
    const uint64_t tag = mix(next_tag(kind, ranks), static_cast<uint64_t>(buffers.kind));
    return queue_->push(std::make_unique<Task>(transport(), tag, std::move(buffers)), brief);
  }

  WorkPtr all_reduce_by_tree(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs,
                             at::Tensor& out);
  WorkPtr reduce_scatter_by_tree(const Group& group, Reduce kind, std::span<ScatteredValue> values);

  std::shared_ptr<CollectiveQueue> queue_;
  std::shared_ptr<Communicator> local_;
  std::unique_ptr<TransferLane> lane_;
  ResultBuffers memory_;
  uint64_t call_ = 0;
  std::map<uint64_t, uint64_t> counts_;
};

WorkPtr P2pEngine::all_reduce(const Group& group, Reduce kind,
                              const std::vector<at::Tensor>& inputs, at::Tensor& out) {
  queue_->check();
  if (group.is_local()) return local_->all_reduce(group, kind, inputs, out);
  if (group.tree) return all_reduce_by_tree(group, kind, inputs, out);
  const Ranks ranks(group, rank());
  const at::Tensor mine = reduce_all(kind, inputs).contiguous();
  if (mine.numel() == 0) {
    out = mine;
    return nullptr;
  }
  out = memory_.make(mine.sizes().vec(), mine.options());
  const at::Tensor from = flat(mine), to = out.view(-1);
  ReduceBuffers reduce;
  reduce.kind = kind;
  const bool brief = mine.nbytes() <= max_single_step_bytes;
  const int64_t count = static_cast<int64_t>(ranks.list.size());
  for (int64_t r = 0; r < count; ++r) {
    const Interval share =
        brief ? Interval{0, from.numel()} : shard_interval(from.numel(), count, r);
    reduce.addends.push_back(from.narrow(0, share.lo, share.size()));
    if (!brief) reduce.others.push_back(to.narrow(0, share.lo, share.size()));
  }
  reduce.result = brief ? to : reduce.others[ranks.mine];
  return push_reduce<ReduceTask>(TagKind::reduce, ranks, std::move(reduce), brief);
}

WorkPtr P2pEngine::all_gather(const Group& group, std::span<GatheredValue> values) {
  queue_->check();
  if (group.is_local()) return local_->all_gather(group, values);
  const Ranks ranks(group, rank());
  std::unique_ptr<ExchangeTask> task = make_exchange(TagKind::gather, ranks);
  size_t bytes = 0;
  for (GatheredValue& value : values) {
    Shape shape = value.inputs[0].sizes().vec();
    int64_t& extent = shape[static_cast<size_t>(value.axis)];
    extent = std::accumulate(value.counts.begin(), value.counts.end(), int64_t{0});
    value.out = memory_.make(shape, value.inputs[0].options());
    bytes += value.out.nbytes();
    int64_t offset = 0;
    size_t local = 0;
    for (int64_t m = 0; m < group.size(); ++m) {
      const int owner = group.owner[static_cast<size_t>(m)];
      const int64_t count = value.counts[static_cast<size_t>(m)];
      const at::Tensor slot = value.out.narrow(value.axis, offset, count);
      offset += count;
      if (owner != rank()) {
        task->recv(owner, slot);
        continue;
      }
      const at::Tensor input = value.inputs[local++].contiguous();
      slot.copy_(input);
      for (int r : ranks.list) {
        if (r != rank()) task->send(r, input);
      }
    }
  }
  return queue_->push(std::move(task), bytes <= max_single_step_bytes);
}

WorkPtr P2pEngine::reduce_scatter(const Group& group, Reduce kind,
                                  std::span<ScatteredValue> values) {
  queue_->check();
  if (group.is_local()) return local_->reduce_scatter(group, kind, values);
  if (group.tree) return reduce_scatter_by_tree(group, kind, values);
  const Ranks ranks(group, rank());
  std::vector<at::Tensor> reduced;
  size_t bytes = 0;
  for (const ScatteredValue& value : values) {
    reduced.push_back(reduce_all(kind, value.inputs));
    bytes += reduced.back().nbytes();
  }
  ReduceBuffers reduce;
  reduce.kind = kind;
  for (int r : ranks.list) {
    reduce.addends.push_back(flat_parts(values, reduced, members_of(group, r)));
  }
  const at::Tensor& mine = reduce.addends[ranks.mine];
  reduce.result = memory_.make(mine.sizes().vec(), mine.options());
  take_parts(group, values, reduced, reduce.result);
  return push_reduce<ReduceTask>(TagKind::scatter, ranks, std::move(reduce),
                                 bytes <= max_single_step_bytes);
}

WorkPtr P2pEngine::all_reduce_by_tree(const Group& group, Reduce kind,
                                      const std::vector<at::Tensor>& inputs, at::Tensor& out) {
  const Ranks ranks(group, rank());
  const std::vector<at::Tensor> mine = subtree_reductions(group, kind, inputs);
  const at::Tensor first = mine.front().contiguous();
  if (first.numel() == 0) {
    out = first;
    return nullptr;
  }
  out = memory_.make(first.sizes().vec(), first.options());
  const at::Tensor to = out.view(-1);
  std::vector<at::Tensor> from;
  for (const at::Tensor& subtree : mine) from.push_back(flat(subtree));
  TreeReduceBuffers reduce;
  reduce.kind = kind;
  const bool brief = first.nbytes() <= max_single_step_bytes;
  const int64_t count = std::ssize(ranks.list);
  for (int64_t r = 0; r < count; ++r) {
    const Interval share = brief ? Interval{0, to.numel()} : shard_interval(to.numel(), count, r);
    reduce.positions.push_back(subtree_positions(group, ranks.list[static_cast<size_t>(r)]));
    reduce.addends.emplace_back();
    for (const at::Tensor& subtree : from) {
      reduce.addends.back().push_back(subtree.narrow(0, share.lo, share.size()));
    }
    if (!brief) reduce.others.push_back(to.narrow(0, share.lo, share.size()));
  }
  reduce.result = brief ? to : reduce.others[ranks.mine];
  return push_reduce<TreeReduceTask>(TagKind::reduce, ranks, std::move(reduce), brief);
}

WorkPtr P2pEngine::reduce_scatter_by_tree(const Group& group, Reduce kind,
                                          std::span<ScatteredValue> values) {
  const Ranks ranks(group, rank());
  // By subtree, and then by value.
  std::vector<std::vector<at::Tensor>> mine(subtree_positions(group, rank()).size());
  size_t bytes = 0;
  for (const ScatteredValue& value : values) {
    const std::vector<at::Tensor> subtrees = subtree_reductions(group, kind, value.inputs);
    for (size_t s = 0; s < subtrees.size(); ++s) mine[s].push_back(subtrees[s]);
    bytes += subtrees.front().nbytes();
  }
  TreeReduceBuffers reduce;
  reduce.kind = kind;
  for (int r : ranks.list) {
    const std::vector<int64_t> members = members_of(group, r);
    reduce.positions.push_back(subtree_positions(group, r));
    reduce.addends.emplace_back();
    for (const std::vector<at::Tensor>& subtree : mine) {
      reduce.addends.back().push_back(flat_parts(values, subtree, members));
    }
  }
  const at::Tensor& like = reduce.addends[ranks.mine].front();
  reduce.result = memory_.make(like.sizes().vec(), like.options());
  take_parts(group, values, mine.front(), reduce.result);
  return push_reduce<TreeReduceTask>(TagKind::scatter, ranks, std::move(reduce),
                                     bytes <= max_single_step_bytes);
}

WorkPtr P2pEngine::all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                              std::vector<std::vector<at::Tensor>>& recv) {
  queue_->check();
  const Ranks ranks(group, rank());
  std::unique_ptr<ExchangeTask> task;
  if (!group.is_local()) task = make_exchange(TagKind::exchange, ranks);
  size_t bytes = 0;
  for (size_t i = 0; i < group.local.size(); ++i) {
    for (int r : ranks.list) {
      for (int64_t m : members_of(group, r)) {
        const at::Tensor& block = send[i][static_cast<size_t>(m)];
        if (!block.defined() || r == rank()) continue;
        task->send(r, block);
        bytes += block.nbytes();
      }
    }
  }
  std::map<int, size_t> position;
  for (size_t from = 0; from < group.owner.size(); ++from) {
    const int owner = group.owner[from];
    const size_t theirs = position[owner]++;
    for (size_t to = 0; to < group.local.size(); ++to) {
      at::Tensor& target = recv[to][from];
      if (owner != rank()) {
        if (target.defined()) task->recv(owner, target);
      } else if (const at::Tensor& block = send[theirs][size_t(group.local[to])]; block.defined()) {
        target = block;
      }
    }
  }
  return task ? queue_->push(std::move(task), bytes <= max_single_step_bytes) : nullptr;
}

}  // namespace

std::shared_ptr<Engine> make_p2p_engine(std::unique_ptr<Transport> transport) {
  return std::make_shared<P2pEngine>(std::move(transport));
}

}  // namespace tessera::detail
