#include <tessera/framework/nn/losses/hinge_losses.hpp>

#include <tessera/framework/nn/losses/internal/function_loss.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

namespace {

const Registered registered_hinge(loss_factories(), {"hinge"}, made_of<Hinge, LossOptions>);
const Registered registered_squared_hinge(loss_factories(), {"squared_hinge"},
                                          made_of<SquaredHinge, LossOptions>);
const Registered registered_categorical_hinge(loss_factories(), {"categorical_hinge"},
                                              made_of<CategoricalHinge, LossOptions>);

/// Returns max(1 - y p, 0). If all labels are 0 or 1, they are converted to -1 and 1.
DTensor elementwise_hinge(const DTensor& y_true, const DTensor& y_pred) {
  const auto equals = [&](double value) {
    return ops::equal(y_true, scalar(value, y_true.mesh(), y_true.dtype()));
  };
  const DTensor binary = ops::all(ops::logical_or(equals(0), equals(1)));
  const DTensor labels = ops::where(binary, y_true * 2 - 1, y_true);
  return ops::relu(ops::neg(labels * y_pred) + 1);
}

DTensor hinge(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  return ops::mean(elementwise_hinge(y_true, y_pred), {-1});
}

DTensor squared_hinge(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  return ops::mean(ops::square(elementwise_hinge(y_true, y_pred)), {-1});
}

DTensor categorical_hinge(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  const DTensor right = ops::sum(y_true * y_pred, {-1});
  const DTensor wrong = ops::max((ops::neg(y_true) + 1) * y_pred, {-1});
  return ops::relu(wrong - right + 1);
}

}  // namespace

Hinge::Hinge(LossOptions options) : LossHandle(function_loss("Hinge", hinge, options)) {}
SquaredHinge::SquaredHinge(LossOptions options)
    : LossHandle(function_loss("SquaredHinge", squared_hinge, options)) {}
CategoricalHinge::CategoricalHinge(LossOptions options)
    : LossHandle(function_loss("CategoricalHinge", categorical_hinge, options)) {}

}  // namespace tessera
