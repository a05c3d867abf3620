#include <tessera/framework/nn/losses/circle_loss.hpp>

#include <limits>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/losses/internal/function_loss.hpp>
#include <tessera/framework/ops/matmul.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(CircleOptions& o, const Visit& visit) {
  visit("gamma", o.gamma);
  visit("margin", o.margin);
  visit("remove_diagonal", o.remove_diagonal);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

namespace {

const Registered registered_circle(loss_factories(), {"circle"}, made_of<Circle, CircleOptions>);

DTensor at_least_zero(const DTensor& x) {
  return ops::clip(x, 0, std::numeric_limits<double>::infinity());
}

/// Returns the labels as a vector.
DTensor labels_of(const DTensor& y_true, const DTensor& y_pred, const std::string& name) {
  const bool fits = y_pred.rank() == 2 && y_true.rank() <= 2 && y_true.numel() == y_pred.size(0);
  if (fits) return ops::cast(ops::reshape(y_true, {y_pred.size(0)}), at::kLong);
  throw ShapeError(name, "labels must be (n,) for embeddings (n, d)",
                   to_string(y_true.shape()) + " and " + to_string(y_pred.shape()),
                   "give one class index per embedding");
}

DTensor circle(const DTensor& y_true, const DTensor& y_pred, const CircleOptions& options) {
  const DTensor labels = labels_of(y_true, y_pred, options.name);
  const auto constant = [&](double value) { return scalar(value, y_pred.mesh(), y_pred.dtype()); };
  const DTensor distances =
      at_least_zero(ops::neg(ops::matmul(y_pred, ops::transpose(y_pred))) + 1);
  DTensor matches = ops::equal(ops::expand_dims(labels, 1), ops::expand_dims(labels, 0));
  const DTensor others = ops::logical_not(matches);
  if (options.remove_diagonal) {
    const at::Tensor off = at::eye(y_pred.size(0), at::kBool).logical_not_();
    matches = ops::logical_and(matches, pack(off, Layout::replicated(y_pred.mesh(), 2)));
  }
  // -1e30 rather than minus infinity, whose gradient is NaN if a row has no other term.
  const auto masked_lse = [&](const DTensor& mask, const DTensor& terms) {
    return ops::logsumexp(ops::where(mask, terms * options.gamma, constant(-1e30)), {1});
  };
  const double m = options.margin;
  const DTensor near = at_least_zero(distances + m) * (distances - m);
  const DTensor far =
      at_least_zero(ops::neg(distances) + (1 + m)) * (ops::neg(distances) + (1 - m));
  const DTensor values = ops::softplus(masked_lse(matches, near) + masked_lse(others, far));
  return values.with_mask(ops::greater(values, constant(0)));
}

}  // namespace

Circle::Circle(CircleOptions options)
    : LossHandle(function_loss("Circle", circle, options, Labels::any)) {}

}  // namespace tessera
