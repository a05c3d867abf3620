#include <tessera/framework/nn/losses/regression_losses.hpp>

#include <cmath>
#include <limits>

#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/framework/nn/losses/internal/function_loss.hpp>
#include <tessera/framework/ops/internal/l2_normalize.hpp>
#include <tessera/framework/ops/reduce.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(HuberOptions& o, const Visit& visit) {
  visit("delta", o.delta);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(CosineSimilarityOptions& o, const Visit& visit) {
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

namespace {

const Registered registered_mean_squared_error(loss_factories(), {"mean_squared_error", "mse"},
                                               made_of<MeanSquaredError, LossOptions>);
const Registered registered_mean_absolute_error(loss_factories(), {"mean_absolute_error", "mae"},
                                                made_of<MeanAbsoluteError, LossOptions>);
const Registered registered_mean_absolute_percentage_error(
    loss_factories(), {"mean_absolute_percentage_error", "mape"},
    made_of<MeanAbsolutePercentageError, LossOptions>);
const Registered registered_mean_squared_logarithmic_error(
    loss_factories(), {"mean_squared_logarithmic_error", "msle"},
    made_of<MeanSquaredLogarithmicError, LossOptions>);
const Registered registered_log_cosh(loss_factories(), {"log_cosh"}, made_of<LogCosh, LossOptions>);
const Registered registered_huber(loss_factories(), {"huber"}, made_of<Huber, HuberOptions>);
const Registered registered_cosine_similarity(loss_factories(), {"cosine_similarity"},
                                              made_of<CosineSimilarity, CosineSimilarityOptions>);

constexpr double infinity = std::numeric_limits<double>::infinity();

DTensor at_least(const DTensor& x, double limit) { return ops::clip(x, limit, infinity); }

DTensor squared(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  return ops::mean(ops::square(y_pred - y_true), {-1});
}

DTensor absolute(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  return ops::mean(ops::abs(y_pred - y_true), {-1});
}

DTensor percentage(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  const DTensor size = at_least(ops::abs(y_true), keras_epsilon);
  return ops::scale(ops::mean(ops::abs((y_true - y_pred) / size), {-1}), 100);
}

DTensor logarithmic(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  const auto log_of = [](const DTensor& x) { return ops::log(at_least(x, keras_epsilon) + 1); };
  return ops::mean(ops::square(log_of(y_pred) - log_of(y_true)), {-1});
}

DTensor log_cosh(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  const DTensor error = y_pred - y_true;
  return ops::mean(error + ops::softplus(error * -2) - std::log(2.0), {-1});
}

DTensor huber(const DTensor& y_true, const DTensor& y_pred, const HuberOptions& options) {
  const DTensor error = ops::abs(y_pred - y_true);
  // With c = min(|e|, delta), c (|e| - c / 2) covers both branches.
  const DTensor clipped = ops::clip(error, -infinity, options.delta);
  return ops::mean(clipped * (error - clipped * 0.5), {-1});
}

DTensor cosine(const DTensor& y_true, const DTensor& y_pred,
               const CosineSimilarityOptions& options) {
  const int64_t axis = normalize_axis(options.axis, y_pred.rank(), options.name);
  return ops::neg(ops::sum(l2_normalize(y_true, axis) * l2_normalize(y_pred, axis), {axis}));
}

}  // namespace

MeanSquaredError::MeanSquaredError(LossOptions options)
    : LossHandle(function_loss("MeanSquaredError", squared, options)) {}
MeanAbsoluteError::MeanAbsoluteError(LossOptions options)
    : LossHandle(function_loss("MeanAbsoluteError", absolute, options)) {}
MeanAbsolutePercentageError::MeanAbsolutePercentageError(LossOptions options)
    : LossHandle(function_loss("MeanAbsolutePercentageError", percentage, options)) {}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(LossOptions options)
    : LossHandle(function_loss("MeanSquaredLogarithmicError", logarithmic, options)) {}
LogCosh::LogCosh(LossOptions options) : LossHandle(function_loss("LogCosh", log_cosh, options)) {}
Huber::Huber(HuberOptions options) : LossHandle(function_loss("Huber", huber, options)) {}
CosineSimilarity::CosineSimilarity(CosineSimilarityOptions options)
    : LossHandle(function_loss("CosineSimilarity", cosine, options)) {}

}  // namespace tessera
