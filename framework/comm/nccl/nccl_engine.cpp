#include <tessera/framework/comm/nccl/nccl_engine.hpp>

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/accelerator.hpp>
#include <tessera/framework/comm/internal/scattered_parts.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>
#include <tessera/framework/comm/nccl/nccl_buffers.hpp>
#include <tessera/framework/comm/nccl/nccl_groups.hpp>

namespace tessera::detail {
namespace {

using Tensors = std::vector<at::Tensor>;
using Matrix = std::vector<Tensors>;

/// A collective that is done when the communication stream reaches an event.
class NcclWork final : public Work {
 public:
  NcclWork(std::shared_ptr<NcclCommunicators> comms, const Gpu& device)
      : comms_(std::move(comms)), device_(device), event_(device.device.type()) {
    event_.record(device.communication);
  }
  void wait() override {
    comms_->check();
    event_.block(device_.compute());
  }
  bool done() const override { return event_.query(); }

 private:
  std::shared_ptr<NcclCommunicators> comms_;
  const Gpu& device_;
  c10::Event event_;
};

class NcclEngine final : public Engine {
 public:
  explicit NcclEngine(const NcclOptions& options)
      : rank_(options.rank),
        size_(options.size),
        device_(gpu(options.device)),
        groups_(options, device_),
        comms_(groups_.communicators()),
        nccl_(comms_->nccl()) {}

  std::string name() const override { return "nccl"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  /// Ignored: NCCL has no tags, so only the coordination can compare calls between ranks.
  void set_call(uint64_t) override {}

  WorkPtr all_reduce(const Group& group, Reduce kind, const Tensors& inputs,
                     at::Tensor& out) override {
    if (is_process_local(group)) return local_->all_reduce(group, kind, inputs, out);
    return issue([&](const c10::Stream& compute) {
      const c10::Device home = first_defined(inputs).device();
      if (group.tree) {
        out = published(reduced_by_tree(group, kind, staged(inputs)), home, compute);
        return;
      }
      const at::Tensor mine = reduce_all(kind, staged(inputs));
      const at::Tensor wire = to_wire(mine);
      const at::Tensor total = at::empty_like(wire);
      if (wire.numel() > 0) {
        NcclComm* const comm = groups_.of(ranks_of(group));
        comms_->run(comm, [&] {
          return nccl_.all_reduce(wire.const_data_ptr(), total.mutable_data_ptr(), wire.numel(),
                                  nccl_type(wire.scalar_type()), nccl_op(kind, mine.scalar_type()),
                                  comm, groups_.stream());
        });
      }
      out = published(from_wire(total, mine.scalar_type()), home, compute);
    });
  }

  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override {
    if (is_process_local(group)) return local_->all_gather(group, values);
    return issue([&](const c10::Stream& compute) {
      std::vector<Tensors> mine;
      std::vector<std::vector<int64_t>> elements;
      for (const GatheredValue& value : values) {
        mine.push_back(staged(value.inputs));
        elements.push_back(elements_of(mine.back()[0].sizes().vec(), value.axis, value.counts));
      }
      const RankRows rows(group, elements);
      const at::Tensor all = gathered(group, rows, mine);
      for (size_t v = 0; v < values.size(); ++v) {
        GatheredValue& value = values[v];
        Shape shape = mine[v][0].sizes().vec();
        Tensors blocks;
        for (size_t m = 0; m < value.counts.size(); ++m) {
          const auto [row, first] = rows.position(m, v);
          shape[static_cast<size_t>(value.axis)] = value.counts[m];
          blocks.push_back(all[row].narrow(0, first, elements[v][m]).view(shape));
        }
        value.out = published(at::cat(blocks, value.axis), value.inputs[0].device(), compute);
      }
    });
  }

  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override {
    if (is_process_local(group)) return local_->reduce_scatter(group, kind, values);
    if (group.tree) {
      return issue([&](const c10::Stream& compute) {
        scatter_by_tree(group, kind, values);
        for (ScatteredValue& value : values) {
          const c10::Device home = first_defined(value.inputs).device();
          for (at::Tensor& part : value.out) part = published(part, home, compute);
        }
      });
    }
    return issue([&](const c10::Stream& compute) {
      Tensors wires;
      std::vector<std::vector<int64_t>> elements;
      const at::ScalarType dtype = values[0].inputs[0].scalar_type();
      for (const ScatteredValue& value : values) {
        wires.push_back(to_wire(reduce_all(kind, staged(value.inputs))));
        std::vector<int64_t> counts;
        for (const Interval& part : value.intervals) counts.push_back(part.size());
        elements.push_back(elements_of(wires.back().sizes().vec(), value.axis, counts));
      }
      const RankRows rows(group, elements);
      const at::Tensor send = rows.make(rows.ranks(), wires[0].options());
      for (size_t v = 0; v < values.size(); ++v) {
        for (size_t m = 0; m < values[v].intervals.size(); ++m) {
          const auto [row, first] = rows.position(m, v);
          const Interval part = values[v].intervals[m];
          send[row]
              .narrow(0, first, elements[v][m])
              .copy_(wires[v].narrow(values[v].axis, part.lo, part.size()).reshape({-1}));
        }
      }
      const at::Tensor row = scattered(group, send, nccl_op(kind, dtype));
      for (size_t v = 0; v < values.size(); ++v) {
        ScatteredValue& value = values[v];
        value.out.clear();
        Shape shape = wires[v].sizes().vec();
        for (int64_t m : group.local) {
          const auto i = static_cast<size_t>(m);
          shape[static_cast<size_t>(value.axis)] = value.intervals[i].size();
          const at::Tensor block =
              row.narrow(0, rows.position(i, v).second, elements[v][i]).view(shape);
          value.out.push_back(
              published(from_wire(block, dtype), value.inputs[0].device(), compute));
        }
      }
    });
  }

  WorkPtr all_to_all(const Group& group, const Matrix& send, Matrix& recv) override {
    if (is_process_local(group)) return local_->all_to_all(group, send, recv);
    return issue([&](const c10::Stream& compute) {
      std::vector<Message> messages;
      for (size_t i = 0; i < send.size(); ++i) {
        for (size_t m = 0; m < group.owner.size(); ++m) {
          if (group.owner[m] == rank_ || !send[i][m].defined()) continue;
          messages.push_back({group.owner[m], true, staged(send[i][m])});
        }
      }
      // In the sender's order: NCCL matches the messages of a pair of ranks by order.
      std::vector<at::Tensor*> targets;
      for (size_t m = 0; m < group.owner.size(); ++m) {
        for (Tensors& row : recv) {
          if (group.owner[m] == rank_ || !row[m].defined()) continue;
          messages.push_back({group.owner[m], false, receive_buffer_like(row[m])});
          targets.push_back(&row[m]);
        }
      }
      groups_.exchange(messages);
      size_t next = 0;
      for (const Message& message : messages) {
        if (message.sends) continue;
        at::Tensor& target = *targets[next++];
        target = published(message.tensor, target.device(), compute);
      }
      copy_local(group, send, recv);
    });
  }

  /// Throws StateError: split_engine() sends messages beside the collectives through the host.
  WorkPtr exchange(const CollectiveCall&, const std::vector<detail::Message>&,
                   const std::vector<detail::Message>&) override {
    throw StateError("nccl", "messages beside the collectives go through the engine for CPUs",
                     "an exchange over NCCL", "use split_engine()");
  }

  void abort(const std::string& reason) override { comms_->abort(reason); }

 private:
  using Message = NcclGroups::Message;

  /// Whether a group needs no other process. An engine of a single process uses NCCL regardless,
  /// for tests.
  bool is_process_local(const Group& group) const { return group.is_local() && size_ > 1; }

  /// Calls `run` with the communication stream as the current one, ordered after all work queued so
  /// far on the compute stream, which it passes to `run`.
  template <class Run>
  WorkPtr issue(const Run& run) {
    const c10::InferenceMode inference;
    comms_->check();
    const c10::Stream compute = device_.compute();
    order(compute, device_.communication);
    const c10::StreamGuard guard(device_.communication);
    run(compute);
    return std::make_shared<NcclWork>(comms_, device_);
  }

  /// Returns the tensor on the engine's GPU, contiguous. Its memory is not reused before the
  /// communication stream is done with it.
  at::Tensor staged(const at::Tensor& tensor) const {
    if (tensor.device() != device_.device) return tensor.to(device_.device).contiguous();
    tensor.record_stream(device_.communication);
    return tensor.contiguous();
  }

  Tensors staged(const Tensors& tensors) const {
    Tensors list;
    for (const at::Tensor& tensor : tensors) {
      list.push_back(tensor.defined() ? staged(tensor) : tensor);
    }
    return list;
  }

  at::Tensor receive_buffer_like(const at::Tensor& tensor) const {
    return at::empty(tensor.sizes(), tensor.options().device(device_.device));
  }

  /// Moves a result to the device of the inputs. On the CPU it is complete on return, unless
  /// check() throws because of an abort.
  at::Tensor published(const at::Tensor& result, c10::Device home, const c10::Stream& compute) {
    if (home == device_.device) {
      result.record_stream(compute);
      return result;
    }
    const at::Tensor moved = result.to(home);
    if (home.is_cpu()) comms_->check();
    return moved;
  }

  /// All-gathers the rows of all ranks; this rank's row holds `mine`: by value, the blocks of this
  /// process's members.
  at::Tensor gathered(const Group& group, const RankRows& rows, const std::vector<Tensors>& mine) {
    const at::TensorOptions options = mine[0][0].options();
    const at::Tensor send = rows.make(1, options)[0];
    const at::Tensor all = at::empty({rows.ranks(), rows.length()}, options);
    for (size_t v = 0; v < mine.size(); ++v) {
      for (size_t i = 0; i < mine[v].size(); ++i) {
        const int64_t first = rows.position(static_cast<size_t>(group.local[i]), v).second;
        send.narrow(0, first, mine[v][i].numel()).copy_(mine[v][i].view({-1}));
      }
    }
    if (rows.length() == 0) return all;
    NcclComm* const comm = groups_.of(ranks_of(group));
    comms_->run(comm, [&] {
      return nccl_.all_gather(send.const_data_ptr(), all.mutable_data_ptr(), send.nbytes(),
                              NcclType::int8, comm, groups_.stream());
    });
    return all;
  }

  /// Reduce-scatters `rows`; returns this rank's row of the result.
  at::Tensor scattered(const Group& group, const at::Tensor& rows, NcclOp op) {
    const at::Tensor mine = at::empty({rows.size(1)}, rows.options());
    if (rows.size(1) == 0) return mine;
    NcclComm* const comm = groups_.of(ranks_of(group));
    comms_->run(comm, [&] {
      return nccl_.reduce_scatter(rows.const_data_ptr(), mine.mutable_data_ptr(), mine.numel(),
                                  nccl_type(rows.scalar_type()), op, comm, groups_.stream());
    });
    return mine;
  }

  /// Sends each rank what the subtrees here add to its result; returns the result of this rank,
  /// reduced in the order of tree_reduce(). NCCL's own reductions have an order that depends on the
  /// number of ranks. The tensors are flat, by rank and then by subtree.
  at::Tensor exchanged_by_tree(const Group& group, Reduce kind, const Matrix& addends) {
    const std::vector<int> ranks = ranks_of(group);
    std::vector<Message> messages;
    std::vector<TreeAddend> parts;
    for (size_t r = 0; r < ranks.size(); ++r) {
      const std::vector<int64_t> positions = subtree_positions(group, ranks[r]);
      for (size_t s = 0; s < addends[r].size() && ranks[r] != rank_; ++s) {
        messages.push_back({ranks[r], true, addends[r][s]});
      }
      for (size_t s = 0; s < positions.size(); ++s) {
        const bool here = ranks[r] == rank_;
        const at::Tensor& mine = addends[my_row(ranks)][here ? s : 0];
        parts.push_back({positions[s], here ? mine : at::empty_like(mine), !here});
        if (!here) messages.push_back({ranks[r], false, parts.back().value});
      }
    }
    if (!messages.empty()) groups_.exchange(messages);
    std::sort(parts.begin(), parts.end(),
              [](const TreeAddend& a, const TreeAddend& b) { return a.position < b.position; });
    return tree_reduce(kind, std::move(parts));
  }

  size_t my_row(const std::vector<int>& ranks) const {
    return static_cast<size_t>(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin());
  }

  /// All-reduces in the order of tree_reduce(): each rank reduces a share of the elements.
  at::Tensor reduced_by_tree(const Group& group, Reduce kind, const Tensors& inputs) {
    const Tensors mine = subtree_reductions(group, kind, inputs);
    const std::vector<int> ranks = ranks_of(group);
    const auto share = [&](const at::Tensor& flat, size_t row) {
      const Interval range = shard_interval(flat.numel(), std::ssize(ranks), int64_t(row));
      return flat.narrow(0, range.lo, range.size());
    };
    Matrix addends(ranks.size());
    for (const at::Tensor& subtree : mine) {
      const at::Tensor flat = subtree.contiguous().view(-1);
      for (size_t r = 0; r < ranks.size(); ++r) addends[r].push_back(share(flat, r));
    }
    const size_t me = my_row(ranks);
    const at::Tensor total = at::empty(mine[0].sizes(), mine[0].options());
    share(total.view(-1), me).copy_(exchanged_by_tree(group, kind, addends));
    std::vector<Message> messages;
    for (size_t r = 0; r < ranks.size(); ++r) {
      if (r == me) continue;
      messages.push_back({ranks[r], true, share(total.view(-1), me)});
      messages.push_back({ranks[r], false, share(total.view(-1), r)});
    }
    if (!messages.empty()) groups_.exchange(messages);
    return total;
  }

  /// Reduce-scatters in the order of tree_reduce().
  void scatter_by_tree(const Group& group, Reduce kind, std::span<ScatteredValue> values) {
    Matrix mine;  // by subtree, and then by value
    for (const ScatteredValue& value : values) {
      const Tensors subtrees = subtree_reductions(group, kind, staged(value.inputs));
      mine.resize(subtrees.size());
      for (size_t s = 0; s < subtrees.size(); ++s) mine[s].push_back(subtrees[s]);
    }
    Matrix addends;
    for (int r : ranks_of(group)) {
      addends.emplace_back();
      for (const Tensors& subtree : mine) {
        addends.back().push_back(flat_parts(values, subtree, members_of(group, r)));
      }
    }
    take_parts(group, values, mine.front(), exchanged_by_tree(group, kind, addends));
  }

  /// Delivers tensors between members of this process.
  void copy_local(const Group& group, const Matrix& send, Matrix& recv) const {
    for (size_t from = 0; from < send.size(); ++from) {
      for (size_t to = 0; to < recv.size(); ++to) {
        const at::Tensor& sent = send[from][static_cast<size_t>(group.local[to])];
        if (sent.defined()) recv[to][static_cast<size_t>(group.local[from])] = sent;
      }
    }
  }

  const int rank_;
  const int size_;
  const Gpu& device_;
  NcclGroups groups_;
  const std::shared_ptr<NcclCommunicators> comms_;
  const NcclLibrary& nccl_;
  const std::shared_ptr<Communicator> local_ = local_communicator();
};

}  // namespace

std::shared_ptr<Engine> make_nccl_engine(const NcclOptions& options) {
  return std::make_shared<NcclEngine>(options);
}

}  // namespace tessera::detail
