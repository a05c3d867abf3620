#include "tests/support/noted_communicator.hpp"

#include <tessera/framework/base/error.hpp>

#include "tests/support/passing_communicator.hpp"

namespace tessera::test {

using namespace detail;

namespace {

class NotedWork final : public Work {
 public:
  NotedWork(WorkPtr inner, CommNotes& notes) : inner_(std::move(inner)), notes_(notes) {
    ++notes_.started;
    ++notes_.waiting;
  }
  void wait() override {
    if (!waited_) --notes_.waiting;
    waited_ = true;
    inner_->wait();
  }
  bool done() const override { return inner_->done(); }

 private:
  WorkPtr inner_;
  CommNotes& notes_;
  bool waited_ = false;
};

class NotedCommunicator final : public PassingCommunicator {
 public:
  NotedCommunicator(std::shared_ptr<Communicator> inner, CommNotes& notes)
      : PassingCommunicator(std::move(inner)), notes_(notes) {}

  void begin(const CollectiveCall& call) override {
    notes_.calls.push_back(str(to_string(call.op), " of ", CommLabel::current()));
    PassingCommunicator::begin(call);
  }
  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& parts,
                     at::Tensor& out) override {
    return noted(PassingCommunicator::all_reduce(group, kind, parts, out));
  }
  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override {
    return noted(PassingCommunicator::all_gather(group, values));
  }
  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override {
    return noted(PassingCommunicator::reduce_scatter(group, kind, values));
  }
  WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                     std::vector<std::vector<at::Tensor>>& recv) override {
    return noted(PassingCommunicator::all_to_all(group, send, recv));
  }

 private:
  WorkPtr noted(WorkPtr work) {
    return work ? std::make_shared<NotedWork>(std::move(work), notes_) : nullptr;
  }

  CommNotes& notes_;
};

}  // namespace

std::shared_ptr<Communicator> noted_communicator(std::shared_ptr<Communicator> inner,
                                                 CommNotes& notes) {
  return std::make_shared<NotedCommunicator>(std::move(inner), notes);
}

}  // namespace tessera::test
