#include <tessera/framework/nn/losses/focal_losses.hpp>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/losses/internal/cross_entropy_common.hpp>
#include <tessera/framework/nn/losses/internal/function_loss.hpp>
#include <tessera/framework/ops/activation.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(BinaryFocalCrossentropyOptions& o, const Visit& visit) {
  visit("apply_class_balancing", o.apply_class_balancing);
  visit("alpha", o.alpha);
  visit("gamma", o.gamma);
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(CategoricalFocalCrossentropyOptions& o, const Visit& visit) {
  visit("alpha", o.alpha);
  visit("gamma", o.gamma);
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(CategoricalGeneralizedCrossEntropyOptions& o, const Visit& visit) {
  visit("q", o.q);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

namespace {

const Registered registered_binary_focal_crossentropy(
    loss_factories(), {"binary_focal_crossentropy"},
    made_of<BinaryFocalCrossentropy, BinaryFocalCrossentropyOptions>);
const Registered registered_categorical_focal_crossentropy(
    loss_factories(), {"categorical_focal_crossentropy"},
    made_of<CategoricalFocalCrossentropy, CategoricalFocalCrossentropyOptions>);
const Registered registered_generalized_cross_entropy(
    loss_factories(), {"categorical_generalized_cross_entropy"},
    made_of<CategoricalGeneralizedCrossEntropy, CategoricalGeneralizedCrossEntropyOptions>);

DTensor binary_focal(const DTensor& y_true, const DTensor& y_pred,
                     const BinaryFocalCrossentropyOptions& options) {
  check_same_shape(options.name, y_true, y_pred);
  const int64_t axis = normalize_axis(options.axis, y_pred.rank(), options.name);
  const DTensor y = smoothed(y_true, options.label_smoothing, 2);
  const DTensor p = options.from_logits ? ops::sigmoid(y_pred) : y_pred;
  const DTensor right = y * p + one_less(y) * one_less(p);
  DTensor values =
      ops::pow(one_less(right), options.gamma) * binary_entropy(y, y_pred, options.from_logits);
  if (options.apply_class_balancing) {
    values = values * (y * options.alpha + one_less(y) * (1 - options.alpha));
  }
  return ops::mean(values, {axis});
}

/// Multiplies x by alpha, a scalar or one factor per class along `axis`.
DTensor balanced(const DTensor& x, const CategoricalFocalCrossentropyOptions& options,
                 int64_t axis) {
  const std::vector<double>& alpha = options.alpha;
  if (alpha.size() == 1) return x * alpha[0];
  if (static_cast<int64_t>(alpha.size()) != x.size(axis)) {
    throw ShapeError(options.name,
                     str("alpha must be one number or one for each of the ", x.size(axis),
                         " classes of ", to_string(x.shape())),
                     str(alpha.size(), " numbers"), "give one per class");
  }
  const at::Tensor factors = at::tensor(alpha, at::kDouble).to(x.dtype());
  Shape shape(static_cast<size_t>(x.rank() - axis), 1);
  shape[0] = x.size(axis);
  return x * pack(factors.reshape(shape), Layout::replicated(x.mesh(), x.rank() - axis));
}

DTensor categorical_focal(const DTensor& y_true, const DTensor& y_pred,
                          const CategoricalFocalCrossentropyOptions& options) {
  check_same_shape(options.name, y_true, y_pred);
  const int64_t axis = normalize_axis(options.axis, y_pred.rank(), options.name);
  const DTensor y = smoothed(y_true, options.label_smoothing, y_true.size(axis));
  const DTensor scores = options.from_logits ? ops::softmax(y_pred, axis) : y_pred;
  const DTensor p = clip_probabilities(scores / ops::sum(scores, {axis}, true));
  const DTensor weights = balanced(ops::pow(one_less(p), options.gamma), options, axis);
  return ops::neg(ops::sum(weights * y * ops::log(p), {axis}));
}

DTensor generalized(const DTensor& y_true, const DTensor& y_pred,
                    const CategoricalGeneralizedCrossEntropyOptions& options) {
  Shape expected = y_pred.shape();
  if (!expected.empty()) expected.pop_back();
  Shape column = expected;
  column.push_back(1);
  if (y_pred.rank() == 0 || (y_true.shape() != expected && y_true.shape() != column)) {
    throw ShapeError(options.name,
                     str("labels must have shape ", to_string(expected), " for predictions ",
                         to_string(y_pred.shape())),
                     to_string(y_true.shape()), "give one class index per prediction");
  }
  DTensor labels = ops::cast(y_true, at::kLong);
  if (labels.rank() == y_pred.rank()) labels = ops::squeeze(labels, {-1});
  const DTensor p = ops::sum(y_pred * ops::one_hot(labels, y_pred.size(-1), y_pred.dtype()), {-1});
  return one_less(ops::pow(p, options.q)) / options.q;
}

}  // namespace

BinaryFocalCrossentropy::BinaryFocalCrossentropy(BinaryFocalCrossentropyOptions options)
    : LossHandle(function_loss("BinaryFocalCrossentropy", binary_focal, options)) {
  check_smoothing((*this)->name(), options.label_smoothing);
}

CategoricalFocalCrossentropy::CategoricalFocalCrossentropy(
    CategoricalFocalCrossentropyOptions options)
    : LossHandle(function_loss("CategoricalFocalCrossentropy", categorical_focal, options)) {
  check_smoothing((*this)->name(), options.label_smoothing);
  if (!options.alpha.empty()) return;
  throw ConfigError((*this)->name(), "alpha holds at least one number", "none", "give 0.25");
}

CategoricalGeneralizedCrossEntropy::CategoricalGeneralizedCrossEntropy(
    CategoricalGeneralizedCrossEntropyOptions options)
    : LossHandle(
          function_loss("CategoricalGeneralizedCrossEntropy", generalized, options, Labels::any)) {
  if (options.q > 0 && options.q < 1) return;
  throw ConfigError((*this)->name(), "q lies between 0 and 1", str(options.q), "give 0.5");
}

}  // namespace tessera
