#include <tessera/framework/ops/attention/internal/attention_call.hpp>

#include <limits>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

namespace tessera {

using namespace detail;

AttentionCall::Kernel AttentionCall::kernel() const {
  const int64_t dim = query.size(-1);
  if (value_is_sharded || value.size(-1) != dim) return Kernel::none;
  if (query.is_cpu()) return Kernel::cpu;
  if (!query.is_cuda() || query.scalar_type() == at::kDouble || dim % 8 != 0) return Kernel::none;
  // Flash takes no bias, and aligns its causal mask with the last step.
  const bool square = !causal || query.size(2) == key.size(2);
  const bool half = query.scalar_type() != at::kFloat;
  return half && !bias && square && dim <= 256 ? Kernel::flash : Kernel::efficient;
}

bool AttentionCall::supports_groups() const {
  const Kernel which = kernel();
  return which == Kernel::cpu || which == Kernel::flash;
}

at::Tensor AttentionCall::scores() const {
  const at::ScalarType dtype = at::toOpMathType(query.scalar_type());
  at::Tensor y = at::matmul(query.to(dtype), key.to(dtype).transpose(-1, -2)).mul_(scale);
  if (bias) y.add_(*bias);
  if (causal) {
    const at::Tensor all = at::ones({y.size(-2), y.size(-1)}, y.options().dtype(at::kBool));
    y.masked_fill_(all.triu(1), -std::numeric_limits<double>::infinity());
  }
  return y;
}

AttentionResult AttentionCall::forward() const {
  switch (kernel()) {
    case Kernel::cpu: {
      const auto all = at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0, causal,
                                                                       bias, scale);
      return {std::get<0>(all), std::get<1>(all)};
    }
    case Kernel::flash: {
      const auto all =
          at::_scaled_dot_product_flash_attention(query, key, value, 0, causal, false, scale);
      return {std::get<0>(all), std::get<1>(all)};
    }
    case Kernel::efficient: {
      const auto all = at::_scaled_dot_product_efficient_attention(query, key, value, bias, true, 0,
                                                                   causal, scale);
      return {std::get<0>(all), std::get<1>(all).narrow(-1, 0, query.size(2))};
    }
    case Kernel::none:
      break;
  }
  const at::Tensor all = scores();
  const at::Tensor y = at::matmul(at::_softmax(all, -1, false), value.to(all.scalar_type()));
  return {y.to(value.scalar_type()), all.logsumexp(-1)};
}

std::pair<at::Tensor, at::Tensor> AttentionCall::softmax_and_grad(const at::Tensor& dy,
                                                                  const at::Tensor& y,
                                                                  const at::Tensor& lse) const {
  const at::Tensor probs = scores().sub_(lse.unsqueeze(-1)).exp_();
  const at::Tensor d = dy.to(probs.scalar_type());
  const at::Tensor mean = at::mul(d, y).sum(-1, true);
  const at::Tensor v = value.to(probs.scalar_type());
  return {probs, at::matmul(d, v.transpose(-1, -2)).sub_(mean).mul_(probs)};
}

Tensors AttentionCall::backward(const at::Tensor& dy, const at::Tensor& y,
                                const at::Tensor& lse) const {
  // Dropout's random state, which is unused.
  const at::Tensor rng_state = at::empty({2}, lse.options().dtype(at::kLong));
  at::Tensor dq, dk, dv;
  switch (kernel()) {
    case Kernel::cpu:
      std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          dy, query, key, value, y, lse, 0, causal, bias, scale);
      break;
    case Kernel::flash:
      std::tie(dq, dk, dv) = at::_scaled_dot_product_flash_attention_backward(
          dy, query, key, value, y, lse, {}, {}, query.size(2), key.size(2), 0, causal, rng_state,
          rng_state, scale);
      break;
    case Kernel::efficient: {
      // The kernel reads the log-sum-exp in blocks of 32.
      const int64_t missing = (32 - lse.size(-1) % 32) % 32;
      const at::Tensor padded =
          at::constant_pad_nd(lse, {0, missing}, std::numeric_limits<double>::infinity());
      const auto all = at::_scaled_dot_product_efficient_attention_backward(
          dy, query, key, value, bias.value_or(at::Tensor()), y, padded, rng_state, rng_state, 0,
          {true, true, true, false}, causal, scale);
      std::tie(dq, dk, dv, std::ignore) = all;
      break;
    }
    case Kernel::none: {
      auto [probs, ds] = softmax_and_grad(dy, y, lse);
      ds.mul_(scale);
      const at::ScalarType dtype = probs.scalar_type();
      dq = at::matmul(ds, key.to(dtype)).to(query.scalar_type());
      dk = at::matmul(ds.transpose(-1, -2), query.to(dtype)).to(key.scalar_type());
      dv = at::matmul(probs.transpose(-1, -2), dy.to(dtype)).to(value.scalar_type());
    }
  }
  return {dq, dk, dv};
}

}  // namespace tessera
