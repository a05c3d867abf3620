#include <tessera/framework/comm/internal/split_engine.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/comm/internal/tree_reduce.hpp>

namespace tessera::detail {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Messages that arrive on the host and are copied to where they belong when they are waited for.
class StagedWork final : public Work {
 public:
  StagedWork(WorkPtr work, std::vector<Message> targets, std::vector<Message> arriving)
      : work_(std::move(work)), targets_(std::move(targets)), arriving_(std::move(arriving)) {}
  void wait() override {
    work_->wait();
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (!targets_[i].tensor.is_same(arriving_[i].tensor)) {
        targets_[i].tensor.copy_(arriving_[i].tensor);
      }
    }
    targets_.clear();
  }
  bool done() const override { return work_->done(); }

 private:
  WorkPtr work_;
  std::vector<Message> targets_, arriving_;
};

class SplitEngine final : public Engine {
 public:
  SplitEngine(std::shared_ptr<Engine> host, std::shared_ptr<Engine> gpus)
      : host_(std::move(host)), gpus_(std::move(gpus)) {}

  std::string name() const override { return gpus_->name(); }
  int rank() const override { return gpus_->rank(); }
  int size() const override { return gpus_->size(); }
  void set_call(uint64_t call) override {
    host_->set_call(call);
    gpus_->set_call(call);
  }

  WorkPtr all_reduce(const Group& group, Reduce kind, const Tensors& inputs,
                     at::Tensor& out) override {
    return engine_of(inputs).all_reduce(group, kind, inputs, out);
  }
  WorkPtr all_gather(const Group& group, std::span<GatheredValue> values) override {
    return engine_of(values[0].inputs).all_gather(group, values);
  }
  WorkPtr reduce_scatter(const Group& group, Reduce kind,
                         std::span<ScatteredValue> values) override {
    return engine_of(values[0].inputs).reduce_scatter(group, kind, values);
  }
  WorkPtr all_to_all(const Group& group, const std::vector<Tensors>& send,
                     std::vector<Tensors>& recv) override {
    const std::vector<Tensors>& received = recv;
    for (const auto* rows : {&send, &received}) {
      for (const Tensors& row : *rows) {
        for (const at::Tensor& tensor : row) {
          if (tensor.defined()) return engine_of({tensor}).all_to_all(group, send, recv);
        }
      }
    }
    return nullptr;  // no tensors to send or receive
  }

  /// Tensors on GPUs go through the host: NCCL has no exchange beside its collectives here.
  WorkPtr exchange(const CollectiveCall& call, const std::vector<Message>& sends,
                   const std::vector<Message>& recvs) override {
    std::vector<Message> from, to;
    for (const Message& message : sends) from.push_back({message.rank, message.tensor.cpu()});
    for (const auto& [rank, tensor] : recvs) {
      const bool here = tensor.is_cpu();
      to.push_back(
          {rank, here ? tensor : at::empty(tensor.sizes(), tensor.options().device(at::kCPU))});
    }
    WorkPtr work = host_->exchange(call, from, to);
    if (!work) return nullptr;
    return std::make_shared<StagedWork>(std::move(work), recvs, std::move(to));
  }

  void flush() override {
    host_->flush();
    gpus_->flush();
  }

  void abort(const std::string& reason) override {
    host_->abort(reason);
    gpus_->abort(reason);
  }

 private:
  Engine& engine_of(const Tensors& inputs) const {
    return first_defined(inputs).is_cpu() ? *host_ : *gpus_;
  }

  const std::shared_ptr<Engine> host_, gpus_;
};

}  // namespace

std::shared_ptr<Engine> split_engine(std::shared_ptr<Engine> host, std::shared_ptr<Engine> gpus) {
  return std::make_shared<SplitEngine>(std::move(host), std::move(gpus));
}

}  // namespace tessera::detail
