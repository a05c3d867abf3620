#include "tests/support/planted_sums.hpp"

#include <tessera/framework/comm/internal/tree_reduce.hpp>

#include <algorithm>

namespace tessera::test {

using namespace detail;

namespace {

class PlantedCommunicator final : public Communicator {
 public:
  PlantedCommunicator(std::shared_ptr<Communicator> inner, PlantedSums order)
      : inner_(std::move(inner)), order_(order) {}
  std::string name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void begin(const CollectiveCall& call) override { inner_->begin(call); }
  void begin_step(int64_t step, uint64_t signature) override {
    inner_->begin_step(step, signature);
  }
  uint64_t calls_hash() const override { return inner_->calls_hash(); }
  std::vector<std::string> gather(const std::string& key, const std::string& text) override {
    return inner_->gather(key, text);
  }
  void report_failure(const std::string& what) override { inner_->report_failure(what); }

  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& inputs,
                     at::Tensor& out) override {
    if (!group.tree || group.is_local()) return inner_->all_reduce(group, kind, inputs, out);
    Group ranks = group;
    ranks.owner.erase(std::unique(ranks.owner.begin(), ranks.owner.end()), ranks.owner.end());
    const auto mine = std::find(ranks.owner.begin(), ranks.owner.end(), rank());
    ranks.local = {mine - ranks.owner.begin()};
    ranks.tree = order_ == PlantedSums::by_chunk;
    return inner_->all_reduce(ranks, kind, {own_sum(kind, inputs)}, out);
  }

  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override {
    return inner_->all_gather(group, values);
  }

  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override {
    if (!group.tree || group.is_local()) return inner_->reduce_scatter(group, kind, values);
    for (ScatteredValue& value : values) {
      at::Tensor sum;
      wait(all_reduce(group, kind, value.inputs, sum));
      for (int64_t member : group.local) {
        const Interval part = value.intervals[static_cast<size_t>(member)];
        value.out.push_back(sum.narrow(value.axis, part.lo, part.size()));
      }
    }
    return nullptr;
  }

  WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                     std::vector<std::vector<at::Tensor>>& recv) override {
    return inner_->all_to_all(group, send, recv);
  }
  WorkPtr exchange(const CollectiveCall& call, const std::vector<Message>& sends,
                   const std::vector<Message>& recvs) override {
    return inner_->exchange(call, sends, recvs);
  }
  void abort(const std::string& reason) override { inner_->abort(reason); }

 private:
  at::Tensor own_sum(Reduce kind, const std::vector<at::Tensor>& inputs) const {
    std::vector<at::Tensor> here;
    std::vector<TreeAddend> addends;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].defined()) continue;
      here.push_back(inputs[i]);
      addends.push_back({static_cast<int64_t>(i), inputs[i]});
    }
    return order_ == PlantedSums::by_chunk ? tree_reduce(kind, addends) : reduce_all(kind, here);
  }

  std::shared_ptr<Communicator> inner_;
  PlantedSums order_;
};

}  // namespace

std::shared_ptr<Communicator> planted_sums(std::shared_ptr<Communicator> inner, PlantedSums order) {
  return std::make_shared<PlantedCommunicator>(std::move(inner), order);
}

}  // namespace tessera::test
