#include <tessera/framework/nn/losses/loss.hpp>

#include <tuple>

#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/framework/tensor/internal/deferred_value.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Returns 1 / sum(weights), or 0 if the sum is 0, like Keras' divide_no_nan.
DTensor reciprocal_sum(const DTensor& weights) {
  const DTensor total = ops::sum(weights);
  const DTensor zero = scalar(0, total.mesh(), total.dtype());
  const DTensor one = scalar(1, total.mesh(), total.dtype());
  const DTensor is_zero = ops::equal(total, zero);
  return ops::where(is_zero, zero, ops::reciprocal(ops::where(is_zero, one, total)));
}

}  // namespace

std::array<const char*, 5> names_of(Reduction) {
  return {"sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none"};
}

const char* to_string(Reduction reduction) {
  return names_of(reduction)[static_cast<size_t>(reduction)];
}

DTensor Loss::in_loss_dtype(const DTensor& y_pred) const {
  const bool later = DeferredValue::of(y_pred) && reads_deferred(y_pred);
  return later ? y_pred : ops::cast(y_pred, loss_dtype(y_pred));
}

DTensor Loss::values(const DTensor& y_true, const DTensor& y_pred) const {
  const auto [labels, predictions] = match_ranks(y_true, in_loss_dtype(y_pred));
  return call(labels, predictions);
}

DTensor Loss::operator()(const DTensor& y_true, const DTensor& y_pred,
                         const DTensor& sample_weight) const {
  const at::ScalarType dtype = loss_dtype(y_pred);
  const auto [labels, predictions] = match_ranks(y_true, in_loss_dtype(y_pred));
  DTensor values = call(labels, predictions);
  DTensor counted = mask(labels, predictions);
  for (const DTensor& mask : {y_pred.mask(), values.mask()}) {
    if (!mask.defined()) continue;
    if (!counted.defined()) {
      counted = mask;
      continue;
    }
    check_mask(name_, counted.shape(), mask.shape());
    const auto [a, b] = align_ranks(counted, mask);
    counted = ops::logical_and(a, b);
  }
  if (counted.defined()) counted = ops::cast(counted, dtype);
  DTensor weights = masked_weights(name_, sample_weight, counted, dtype);
  if (weights.defined()) {
    // A scalar loss of the batch takes the weights' shape; with a mask, a loss of all time steps
    // takes the mask's.
    if (values.rank() > 0) {
      const auto check = counted.defined() ? check_mask : check_weights;
      check(name_, values.shape(), weights.shape());
    }
    std::tie(values, weights) = align_ranks(values, weights);
    values = values * weights;
  }
  if (reduction_ == Reduction::none || values.rank() == 0) return values;
  const DTensor total = ops::sum(values);
  if (reduction_ == Reduction::sum) return total;
  if (reduction_ == Reduction::mean_with_sample_weight && weights.defined()) {
    return ops::scale_by(total, reciprocal_sum(weights));
  }
  if (values.numel() == 0) return ops::scale(total, 0);
  const auto numel = static_cast<double>(values.numel());
  if (!counted.defined()) return ops::scale(total, 1 / numel);
  // An element of the mask stands for as many values as it is broadcast to.
  const DTensor mean = ops::scale_by(total, reciprocal_sum(counted));
  const auto each = static_cast<double>(counted.numel()) / numel;
  return each == 1 ? mean : ops::scale(mean, each);
}

}  // namespace tessera
