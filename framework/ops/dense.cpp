#include <algorithm>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/internal/broadcast.hpp>
#include <tessera/framework/ops/internal/elementwise_grad.hpp>
#include <tessera/framework/ops/internal/matrix_gradient.hpp>
#include <tessera/framework/ops/matmul.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Fused x · kernel + bias for an unsharded contracted axis; a sharded one leaves a partial sum
/// that must be resolved before the bias is added.
template <bool Relu>
struct DenseOp {
  static constexpr std::string_view name = Relu ? "dense_relu" : "dense";
  auto attributes() const { return std::tuple<>(); }

  Specs infer(const Specs& in) const {
    const Shape &x = in[0].shape, &kernel = in[1].shape, &bias = in[2].shape;
    check_floating(name, in[0]);
    check_same_dtype(name, in);
    if (x.size() < 2 || kernel.size() != 2 || x.back() != kernel[0] || bias != Shape{kernel[1]}) {
      throw ShapeError(std::string(name), "x (…, k) goes with a kernel (k, n) and a bias (n,)",
                       to_string(x) + ", " + to_string(kernel) + " and " + to_string(bias),
                       "reshape an operand");
    }
    if (kernel[0] == 0) {
      throw ShapeError(std::string(name), "the contracted axis must not be empty",
                       to_string(kernel), "pass tensors that are not empty");
    }
    Spec y = in[0];
    y.shape.back() = kernel[1];
    return {y};
  }
  Rule rule(const Specs& in) const {
    std::string lead;
    for (int64_t a = 0; a + 1 < in[0].rank(); ++a) lead += str(" b", a);
    return Rule::parse(lead + " !k , !k n , n ->" + lead + " n");
  }
  Tensors forward(const LocalArgs& in) const {
    const at::Tensor& x = in[0];
    const at::Tensor rows = x.dim() == 2 ? x : x.reshape({-1, x.size(-1)});
    const at::Tensor y =
        Relu ? at::_addmm_activation(in[2], rows, in[1]) : at::addmm(in[2], rows, in[1]);
    if (x.dim() == 2) return {y};
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = y.size(-1);
    return {y.view(shape)};
  }

  /// relu's gradient reads its result, so the fused operation saves no more than the separate ones.
  static constexpr Saves saves{0b011, Relu ? 1u : 0u};
  Grads gradient(const Saved& saved, const Cotangents& dys, Needs needs) const {
    const DTensor dy = Relu ? relu_grad(dys[0], saved.out()) : dys[0];
    Grads grads(3);
    // An input that is not read is not all-gathered again either.
    if (needs[0]) grads[0] = ops::matmul(dy, saved.in(1), false, true);
    if (needs[1]) {
      const DTensor& x = saved.in(0);
      grads[1] = x.rank() > 2 ? matrix_gradient(x, dy) : ops::matmul(x, dy, true);
    }
    if (needs[2]) grads[2] = sum_to(dy, saved.shape(2));
    return grads;
  }
  static Samples<DenseOp> samples() {
    return {{{{{4, 3}}, {{3, 5}}, {{5}}}}, {{{{2, 4, 3}}, {{3, 2}}, {{2}}}}};
  }
};
using LinearDenseOp = DenseOp<false>;
using ReluDenseOp = DenseOp<true>;
TESSERA_REGISTER_OP(LinearDenseOp);
TESSERA_REGISTER_OP(ReluDenseOp);

/// Whether DenseOp computes and communicates the same as matmul and add: no input is partial, and
/// over the mesh dimensions that x does not use, the kernel's columns and the bias are sharded
/// equally.
bool can_fuse(const DTensor& x, const DTensor& kernel, const DTensor& bias) {
  for (const DTensor* each : {&x, &kernel, &bias}) {
    if (!each->defined() || each->dtype() != x.dtype() || each->layout().is_partial()) return false;
  }
  if (!at::isFloatingType(x.dtype()) || x.rank() < 2 || kernel.rank() != 2 || bias.rank() != 1 ||
      x.shape().back() < 1 || x.layout().num_shards(x.rank() - 1) > 1) {
    return false;
  }
  if (!kernel.is_parameter() || !bias.is_parameter()) return false;
  // Parameters are all-gathered over the mesh dimensions that shard x.
  const auto sharding_dims = [&](const DTensor& parameter, int64_t axis) {
    std::vector<int> dims = parameter.layout().axis(axis);
    std::erase_if(dims, [&](int dim) { return x.layout().used_dims() >> dim & 1; });
    return dims;
  };
  const std::vector<int> column_dims = sharding_dims(kernel, 1), bias_dims = sharding_dims(bias, 0);
  // A replicated bias is sliced at no cost if the kernel's columns keep their sharding.
  const bool fits = bias_dims.empty() && column_dims == kernel.layout().axis(1);
  return sharding_dims(kernel, 0).empty() && (fits || bias_dims == column_dims);
}

}  // namespace

namespace ops {

DTensor dense(const DTensor& x, const DTensor& kernel, const DTensor& bias, bool relu) {
  if (can_fuse(x, kernel, bias)) {
    return relu ? run_op(ReluDenseOp{}, {x, kernel, bias})
                : run_op(LinearDenseOp{}, {x, kernel, bias});
  }
  const DTensor y = ops::add(ops::matmul(x, kernel), bias);
  return relu ? ops::relu(y) : y;
}

}  // namespace ops
}  // namespace tessera
