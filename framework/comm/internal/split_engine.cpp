#include <tessera/framework/comm/internal/split_engine.hpp>

#include <tessera/framework/comm/internal/tree_reduce.hpp>

namespace tessera::detail {
namespace {

using Tensors = std::vector<at::Tensor>;

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
