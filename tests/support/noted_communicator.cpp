#include "tests/support/noted_communicator.hpp"

#include <tessera/framework/base/error.hpp>

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

class NotedCommunicator final : public Communicator {
 public:
  NotedCommunicator(std::shared_ptr<Communicator> inner, CommNotes& notes)
      : inner_(std::move(inner)), notes_(notes) {}
  std::string name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  void begin(const CollectiveCall& call) override {
    notes_.calls.push_back(str(to_string(call.op), " of ", CommLabel::current()));
    inner_->begin(call);
  }
  std::vector<std::string> gather(const std::string& key, const std::string& text) override {
    return inner_->gather(key, text);
  }
  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& parts,
                     at::Tensor& out) override {
    return noted(inner_->all_reduce(group, kind, parts, out));
  }
  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override {
    return noted(inner_->all_gather(group, values));
  }
  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override {
    return noted(inner_->reduce_scatter(group, kind, values));
  }
  WorkPtr all_to_all(const Group& group, const std::vector<std::vector<at::Tensor>>& send,
                     std::vector<std::vector<at::Tensor>>& recv) override {
    return noted(inner_->all_to_all(group, send, recv));
  }
  void abort(const std::string& reason) override { inner_->abort(reason); }

 private:
  WorkPtr noted(WorkPtr work) {
    return work ? std::make_shared<NotedWork>(std::move(work), notes_) : nullptr;
  }

  std::shared_ptr<Communicator> inner_;
  CommNotes& notes_;
};

}  // namespace

std::shared_ptr<Communicator> noted_communicator(std::shared_ptr<Communicator> inner,
                                                 CommNotes& notes) {
  return std::make_shared<NotedCommunicator>(std::move(inner), notes);
}

}  // namespace tessera::test
