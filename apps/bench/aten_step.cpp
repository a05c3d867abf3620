#include "apps/bench/aten_step.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

namespace tessera::bench {

AtenStep::AtenStep(const std::vector<int64_t>& sizes) {
  const c10::InferenceMode inference;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    weights_.push_back(at::rand({sizes[i], sizes[i + 1]}).sub_(0.5).mul_(0.1));
    weights_.push_back(at::zeros({sizes[i + 1]}));
  }
  for (const at::Tensor& weight : weights_) {
    momenta_.push_back(at::zeros_like(weight));
    velocities_.push_back(at::zeros_like(weight));
    steps_.push_back(at::zeros({}));
  }
}

double AtenStep::operator()(const at::Tensor& x, const at::Tensor& y) {
  const c10::InferenceMode inference;
  std::vector<at::Tensor> activations = {x};
  for (size_t w = 0; w < weights_.size(); w += 2) {
    at::Tensor z = at::addmm(weights_[w + 1], activations.back(), weights_[w]);
    activations.push_back(w + 2 < weights_.size() ? z.relu_() : z);
  }
  const at::Tensor log_p = at::log_softmax(activations.back(), 1);
  const at::Tensor loss = at::nll_loss(log_p, y);
  at::Tensor dy = log_p.exp();
  dy.scatter_add_(1, y.unsqueeze(1), at::full({1, 1}, -1.0).expand({y.size(0), 1}));
  std::vector<at::Tensor> gradients = backward(activations, dy.div_(y.size(0)));
  for (at::Tensor& step : steps_) step.add_(1);
  at::_fused_adam_(weights_, gradients, momenta_, velocities_, {}, steps_, 1e-3, 0.9, 0.999, 0,
                   1e-7, false, false);
  return loss.item<double>();
}

std::vector<at::Tensor> AtenStep::backward(const std::vector<at::Tensor>& activations,
                                           at::Tensor dy) const {
  std::vector<at::Tensor> gradients(weights_.size());
  for (size_t w = weights_.size(); w > 0; w -= 2) {
    const at::Tensor& in = activations[w / 2 - 1];
    gradients[w - 2] = in.t().mm(dy);
    gradients[w - 1] = dy.sum(0);
    if (w > 2) dy = at::threshold_backward(dy.mm(weights_[w - 2].t()), in, 0);
  }
  return gradients;
}

}  // namespace tessera::bench
