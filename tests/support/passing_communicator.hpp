#pragma once

#include <tessera/framework/comm/internal/communicator.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {

using namespace detail;

/// Passes all calls to another communicator. A test overrides what it watches.
class PassingCommunicator : public Communicator {
 public:
  explicit PassingCommunicator(std::shared_ptr<Communicator> inner) : inner_(std::move(inner)) {}
  std::string name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  void begin(const CollectiveCall& call) override { inner_->begin(call); }
  void begin_step(int64_t step, uint64_t signature) override {
    inner_->begin_step(step, signature);
  }
  uint64_t calls_hash() const override { return inner_->calls_hash(); }
  void report_failure(const std::string& what) override { inner_->report_failure(what); }
  std::vector<std::string> gather(const std::string& key, const std::string& text) override {
    return inner_->gather(key, text);
  }
  WorkPtr all_reduce(const Group& group, Reduce kind, const std::vector<at::Tensor>& parts,
                     at::Tensor& out) override {
    return inner_->all_reduce(group, kind, parts, out);
  }
  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override {
    return inner_->all_gather(group, values);
  }
  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override {
    return inner_->reduce_scatter(group, kind, values);
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
  std::shared_ptr<Communicator> inner_;
};

}  // namespace tessera::test
