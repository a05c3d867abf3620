#include "tests/support/thread_communicator.hpp"

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/internal/tree_reduce.hpp>
#include <tessera/framework/mesh/internal/hosting.hpp>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/support/rendezvous.hpp"

namespace tessera::test {

using namespace detail;

namespace {

/// Results that arrive only when waited for.
class LateResults final : public Work {
 public:
  /// Returns a tensor that will hold `value`.
  at::Tensor promise(const at::Tensor& value) {
    at::Tensor target = at::empty_like(value);
    promise(target, value);
    return target;
  }
  void promise(at::Tensor target, const at::Tensor& value) {
    // A reader that does not wait must see garbage.
    target.copy_(value.is_floating_point() ? at::full_like(value, NAN) : value.bitwise_not());
    promises_.emplace_back(std::move(target), value);
  }
  void wait() override {
    for (auto& [target, value] : promises_) target.copy_(value);
    promises_.clear();
  }
  bool done() const override { return promises_.empty(); }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> promises_;
};

std::string describe(const at::Tensor& tensor) {
  return str(c10::toString(tensor.scalar_type()), " ", to_string(tensor.sizes().vec()));
}

/// Messages of other ranks, which arrive only when waited for.
class AwaitedMessages final : public Work {
 public:
  AwaitedMessages(std::shared_ptr<Rendezvous> hub, int rank, const std::string& text,
                  const std::vector<Message>& recvs)
      : hub_(std::move(hub)) {
    for (const Message& message : recvs) {
      slots_.push_back({hub_->receive(message.rank, rank, text), message.tensor});
    }
  }
  void wait() override {
    for (const auto& [slot, target] : slots_) target.copy_(hub_->take(*slot));
    slots_.clear();
  }
  bool done() const override { return slots_.empty(); }

 private:
  std::shared_ptr<Rendezvous> hub_;
  std::vector<std::pair<std::shared_ptr<Rendezvous::Slot>, at::Tensor>> slots_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Rendezvous> hub, int rank) : hub_(hub), rank_(rank) {}
  std::string name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }

  const RankNotes& notes() const { return notes_; }

  void begin(const CollectiveCall& call) override {
    const std::string text =
        detail::str(to_string(call.op), call.dims, call.dtype, to_string(call.shape),
                    to_string(call.kind), call.axis, call.to_axis);
    ++notes_.calls;
    notes_.hash = notes_.hash * 1000003 + std::hash<std::string>()(text);
  }
  void begin_step(int64_t step, uint64_t signature) override {
    notes_.steps.emplace_back(step, signature);
  }
  uint64_t calls_hash() const override { return notes_.hash; }
  void report_failure(const std::string& what) override { notes_.failure = what; }

  std::vector<std::string> gather(const std::string& key, const std::string& text) override {
    return hub_->gather(rank_, key, text);
  }

  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& parts,
                     at::Tensor& out) override {
    hub_->check_alive();
    if (group.is_local()) {
      out = reduce_inputs(group, kind, parts);
      return nullptr;
    }
    const std::string what = describe(first_defined(parts));
    const at::Tensor total =
        reduced(group, kind, parts, str("all_reduce ", to_string(kind), " of ", what));
    const auto work = std::make_shared<LateResults>();
    out = work->promise(total);
    return work;
  }

  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override {
    const auto work = std::make_shared<LateResults>();
    for (GatheredValue& value : values) {
      hub_->check_alive();
      check_counts(group, value);
      const std::vector<at::Tensor>& parts = value.inputs;
      if (group.is_local()) {
        value.out = parts.size() == 1 ? parts[0] : at::cat(parts, value.axis);
        continue;
      }
      Shape shape = parts[0].sizes().vec();
      shape[static_cast<size_t>(value.axis)] = -1;
      const std::string call = str("all_gather of ", c10::toString(parts[0].scalar_type()), " ",
                                   to_string(shape), " by ", to_string(value.counts));
      const Parcels parcels = meet(group, call, parts);
      std::vector<at::Tensor> all;
      std::map<int, size_t> next;
      for (int owner : group.owner) all.push_back(parcels->at(owner)[next[owner]++]);
      value.out = work->promise(at::cat(all, value.axis));
    }
    return group.is_local() ? nullptr : work;
  }

  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override {
    const auto work = std::make_shared<LateResults>();
    for (ScatteredValue& value : values) {
      hub_->check_alive();
      std::string call =
          str("reduce_scatter ", to_string(kind), " of ", describe(first_defined(value.inputs)));
      for (Interval part : value.intervals) call += str(" ", part.lo, "-", part.hi);
      const at::Tensor full = group.is_local() ? reduce_inputs(group, kind, value.inputs)
                                               : reduced(group, kind, value.inputs, call);
      value.out.clear();
      for (int64_t m : group.local) {
        const Interval part = value.intervals[static_cast<size_t>(m)];
        value.out.push_back(work->promise(full.narrow(value.axis, part.lo, part.size())));
      }
    }
    return work;
  }

  WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                     std::vector<std::vector<at::Tensor>>& recv) override {
    hub_->check_alive();
    Parcels parcels;
    std::vector<at::Tensor> flat;
    for (const auto& row : send) flat.insert(flat.end(), row.begin(), row.end());
    if (!group.is_local()) parcels = meet(group, "all_to_all", flat);
    const auto work = std::make_shared<LateResults>();
    std::map<int, size_t> position;
    for (size_t from = 0; from < group.owner.size(); ++from) {
      const int owner = group.owner[from];
      const size_t row = position[owner]++ * group.owner.size();
      for (size_t to = 0; to < group.local.size(); ++to) {
        const size_t cell = row + static_cast<size_t>(group.local[to]);
        at::Tensor& target = recv[to][from];
        if (owner == rank_) {
          if (flat[cell].defined()) target = flat[cell];
        } else {
          receive(parcels->at(owner)[cell], target, *work);
        }
      }
    }
    return work;
  }

  WorkPtr exchange(const CollectiveCall& call, const std::vector<Message>& sends,
                   const std::vector<Message>& recvs) override {
    hub_->check_alive();
    const std::string text = str(to_string(call.op), " of ", c10::toString(call.dtype), " ",
                                 to_string(call.shape), " over ", call.mesh.names(call.dims));
    for (const Message& message : sends) {
      hub_->send(rank_, message.rank, text, message.tensor.clone());
    }
    if (recvs.empty()) return nullptr;
    return std::make_shared<AwaitedMessages>(hub_, rank_, text, recvs);
  }

  void abort(const std::string& reason) override { hub_->abort(reason); }

 private:
  using Parcels = Rendezvous::Parcels;

  Parcels meet(const Group& group, const std::string& call, const std::vector<at::Tensor>& parts) {
    const std::set<int> ranks(group.owner.begin(), group.owner.end());
    std::vector<at::Tensor> copies;
    for (const at::Tensor& part : parts) {
      copies.push_back(part.defined() ? part.clone() : at::Tensor());
    }
    return hub_->meet(rank_, {ranks.begin(), ranks.end()},
                      str(call, " over ", group.size(), " members"), std::move(copies));
  }

  at::Tensor reduced(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs,
                     const std::string& call) {
    if (group.tree) return reduced_by_tree(group, kind, inputs, call);
    std::vector<at::Tensor> addends;
    const Parcels parcels = meet(group, call, {reduce_all(kind, inputs)});
    for (const auto& [owner, tensors] : *parcels) addends.push_back(tensors[0]);
    return reduce_all(kind, addends);
  }

  at::Tensor reduced_by_tree(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs,
                             const std::string& call) {
    const Parcels parcels = meet(group, call + " by tree", subtree_reductions(group, kind, inputs));
    std::vector<TreeAddend> addends;
    for (const auto& [owner, tensors] : *parcels) {
      const std::vector<int64_t> positions = subtree_positions(group, owner);
      for (size_t s = 0; s < tensors.size(); ++s) addends.push_back({positions[s], tensors[s]});
    }
    std::sort(addends.begin(), addends.end(),
              [](const TreeAddend& a, const TreeAddend& b) { return a.position < b.position; });
    return tree_reduce(kind, std::move(addends));
  }

  void receive(const at::Tensor& value, at::Tensor& target, LateResults& work) {
    const bool fits = value.defined() == target.defined() &&
                      (!value.defined() || describe(value) == describe(target));
    if (!fits) {
      hub_->fail(str("rank ", rank_, " awaits ", target.defined() ? describe(target) : "nothing",
                     " and is sent ", value.defined() ? describe(value) : "nothing"));
    }
    if (value.defined()) work.promise(target, value);
  }

  void check_counts(const Group& group, const GatheredValue& value) {
    const std::vector<at::Tensor>& parts = value.inputs;
    bool fits = value.counts.size() == group.owner.size() && parts.size() == group.local.size();
    for (size_t i = 0; fits && i < parts.size(); ++i) {
      fits = parts[i].size(value.axis) == value.counts[static_cast<size_t>(group.local[i])];
    }
    if (!fits) hub_->fail(str("rank ", rank_, " gathers other parts than it counts"));
  }

  std::shared_ptr<Rendezvous> hub_;
  int rank_;
  RankNotes notes_;
};

}  // namespace

void run_ranks(int ranks, const RankFunction& function, std::chrono::milliseconds patience) {
  const auto hub = std::make_shared<Rendezvous>(ranks, patience);
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::exception_ptr first;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const c10::InferenceMode inference;
      try {
        function(r, std::make_shared<ThreadCommunicator>(hub, r));
        hub->leave(r);
      } catch (const std::exception& error) {
        {
          const std::lock_guard<std::mutex> lock(mutex);
          if (!first) first = std::current_exception();
        }
        hub->abort(str("rank ", r, " failed: ", error.what()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

const RankNotes& notes_of(const Mesh& mesh) {
  return static_cast<const ThreadCommunicator&>(communicator_of(mesh)).notes();
}

Mesh rank_mesh(const MeshDims& dims, const std::shared_ptr<Communicator>& communicator) {
  const auto hosting = default_hosting(dims, communicator->size());
  const std::vector<int64_t> ids = hosting->devices_of(communicator->rank());
  return create_mesh_part(dims, ids, virtual_cpus(std::ssize(ids)), communicator, "", hosting);
}

bool can_host(const MeshDims& dims, int ranks) {
  try {
    return default_hosting(dims, ranks) != nullptr;
  } catch (const MeshError&) {
    return false;
  }
}

void expect(bool ok, const std::string& text) {
  if (!ok) throw std::runtime_error(text);
}

}  // namespace tessera::test
