#include "tests/processes/naps.hpp"

#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include <ATen/ATen.h>

#include <tessera/framework/ops/custom_op.hpp>

namespace tessera::test {

using namespace detail;

namespace {

std::mutex naps_mutex;
std::vector<NapTime> naps;
std::chrono::milliseconds nap_time{0};

int64_t now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Sleeps, and returns its argument.
at::Tensor after_nap(const at::Tensor& result) {
  NapTime time = {.begin = now()};
  std::this_thread::sleep_for(nap_time);
  time.end = now();
  const std::lock_guard<std::mutex> lock(naps_mutex);
  naps.push_back(time);
  return result;
}

const ops::CustomOp& product_gradient() {
  static const ops::CustomOp op(
      "nap_product_gradient",
      {.rule = "b n, n -> b n",
       .forward = [](std::span<const at::Tensor> in) { return after_nap(in[0] * in[1]); }});
  return op;
}

const ops::CustomOp& weight_gradient() {
  static const ops::CustomOp op(
      "nap_weight_gradient",
      {.rule = "b n, b n -> n", .forward = [](std::span<const at::Tensor> in) {
         return after_nap((in[0] * in[1]).sum(0));
       }});
  return op;
}

const ops::CustomOp& product() {
  static const ops::CustomOp op(
      "nap_product",
      {.rule = "b n, n -> b n",
       .forward = [](std::span<const at::Tensor> in) { return after_nap(in[0] * in[1]); },
       .gradient =
           [](const std::vector<DTensor>& in, const DTensor&, const DTensor& dy) {
             return std::vector<DTensor>{product_gradient()({dy, in[1]}),
                                         weight_gradient()({in[0], dy})};
           }});
  return op;
}

class NapLayer final : public Layer {
 public:
  explicit NapLayer(const std::string& name) : Layer({.name = name}) {}
  std::string class_name() const override { return "Nap"; }
  Shape output_shape(const Shapes& inputs) const override { return inputs[0]; }

 protected:
  void make_weights(const Shapes& inputs) override {
    weight_ = add_weight("weight", {inputs[0].back()}, "ones");
  }
  DTensor call(const Inputs& inputs, const CallContext&) override {
    return product()({inputs[0], read(weight_)});
  }

 private:
  Variable weight_;
};

}  // namespace

LayerHandle nap(const std::string& name, std::chrono::milliseconds time) {
  nap_time = time;
  return make_layer<NapLayer>(name);
}

std::vector<NapTime> taken_naps() {
  const std::lock_guard<std::mutex> lock(naps_mutex);
  return std::exchange(naps, {});
}

}  // namespace tessera::test
