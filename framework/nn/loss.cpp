#include <tessera/framework/nn/loss.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/losses.hpp>
#include <tessera/framework/nn/registry.hpp>
#include <tessera/framework/nn/weighting.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {
namespace {

/// 1 / sum(weights); 0 if they sum to 0, as Keras' divide_no_nan.
DTensor reciprocal_sum(const DTensor& weights) {
  const DTensor total = ops::sum(weights);
  const DTensor zero = scalar(0, total.mesh(), total.dtype());
  const DTensor one = scalar(1, total.mesh(), total.dtype());
  const DTensor is_zero = ops::equal(total, zero);
  return ops::where(is_zero, zero, ops::reciprocal(ops::where(is_zero, one, total)));
}

}  // namespace

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum_over_batch_size:
      return "sum_over_batch_size";
    case Reduction::sum:
      return "sum";
    case Reduction::mean_with_sample_weight:
      return "mean_with_sample_weight";
    case Reduction::none:
      return "none";
  }
  return "";
}

DTensor Loss::operator()(const DTensor& y_true, const DTensor& y_pred,
                         const DTensor& sample_weight) const {
  const at::ScalarType dtype = y_pred.dtype() == at::kDouble ? at::kDouble : at::kFloat;
  const auto [labels, predictions] = match_ranks(y_true, ops::cast(y_pred, dtype));
  DTensor values = call(labels, predictions);
  DTensor weights;
  if (sample_weight.defined()) {
    std::tie(values, weights) = match_ranks(values, ops::cast(sample_weight, dtype));
    check_weights(name_.c_str(), values.shape(), weights.shape());
    values = values * weights;
  }
  if (reduction_ == Reduction::none || values.rank() == 0) return values;
  const DTensor total = ops::sum(values);
  if (reduction_ == Reduction::sum) return total;
  if (reduction_ == Reduction::mean_with_sample_weight && weights.defined()) {
    return ops::scale_by(total, reciprocal_sum(weights));
  }
  return ops::scale(total, values.numel() == 0 ? 0.0 : 1.0 / static_cast<double>(values.numel()));
}

LossRef make_loss(const std::string& name) {
  static const Factories<LossRef> factories = {
      {"binary_crossentropy", [] { return BinaryCrossentropy(); }},
      {"categorical_crossentropy", [] { return CategoricalCrossentropy(); }},
      {"mean_squared_error", [] { return MeanSquaredError(); }},
      {"mse", [] { return MeanSquaredError(); }},
      {"sparse_categorical_crossentropy", [] { return SparseCategoricalCrossentropy(); }},
  };
  return make_by_name("loss", factories, name);
}

LossRef::LossRef(const char* name) : LossRef(make_loss(name)) {}

}  // namespace tessera
