#include <tessera/framework/nn/losses/cross_entropy_losses.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/framework/nn/losses/internal/cross_entropy_common.hpp>
#include <tessera/framework/nn/losses/internal/function_loss.hpp>
#include <tessera/framework/ops/cross_entropy.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(SparseCategoricalCrossentropyOptions& o, const Visit& visit) {
  visit("from_logits", o.from_logits);
  visit("ignore_class", o.ignore_class);
  visit("reduction", o.reduction);
  visit("axis", o.axis);
  visit("name", o.name);
}

template <class Visit>
void fields(CategoricalCrossentropyOptions& o, const Visit& visit) {
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

template <class Visit>
void fields(BinaryCrossentropyOptions& o, const Visit& visit) {
  visit("from_logits", o.from_logits);
  visit("label_smoothing", o.label_smoothing);
  visit("axis", o.axis);
  visit("reduction", o.reduction);
  visit("name", o.name);
}

namespace {

const Registered registered_sparse_categorical_crossentropy(
    loss_factories(), {"sparse_categorical_crossentropy"},
    made_of<SparseCategoricalCrossentropy, SparseCategoricalCrossentropyOptions>);
const Registered registered_categorical_crossentropy(
    loss_factories(), {"categorical_crossentropy"},
    made_of<CategoricalCrossentropy, CategoricalCrossentropyOptions>);
const Registered registered_binary_crossentropy(
    loss_factories(), {"binary_crossentropy", "bce"},
    made_of<BinaryCrossentropy, BinaryCrossentropyOptions>);
const Registered registered_kl_divergence(loss_factories(), {"kl_divergence", "kld"},
                                          made_of<KLDivergence, LossOptions>);
const Registered registered_poisson(loss_factories(), {"poisson"}, made_of<Poisson, LossOptions>);

DTensor axis_last(const DTensor& x, int64_t axis) {
  std::vector<int64_t> order;
  for (int64_t a = 0; a < x.rank(); ++a) {
    if (a != axis) order.push_back(a);
  }
  order.push_back(axis);
  return axis == x.rank() - 1 ? x : ops::transpose(x, order);
}

class SparseCategoricalCrossentropyLoss : public Loss {
 public:
  explicit SparseCategoricalCrossentropyLoss(SparseCategoricalCrossentropyOptions options)
      : Loss(options.reduction, options.name), options_(std::move(options)) {}
  std::string class_name() const override { return "SparseCategoricalCrossentropy"; }
  Json config() const override { return config_of(options_); }
  bool can_be_replayed() const override { return true; }

  DTensor call(const DTensor& y_true, const DTensor& y_pred) const override {
    DTensor labels = labels_of(y_true, y_pred);
    const DTensor counted = mask(y_true, y_pred);
    if (counted.defined()) {
      labels = ops::where(counted, labels, scalar(0, labels.mesh(), labels.dtype()));
    }
    const DTensor predictions = axis_last(y_pred, class_axis(y_pred));
    const DTensor logits =
        options_.from_logits ? predictions : ops::log(clip_probabilities(predictions));
    const DTensor values = ops::sparse_softmax_cross_entropy(logits, labels);
    if (!counted.defined()) return values;
    return ops::where(counted, values, scalar(0, values.mesh(), values.dtype()));
  }

  bool reads_deferred(const DTensor& y_pred) const override {
    return options_.from_logits && class_axis(y_pred) == y_pred.rank() - 1;
  }

  DTensor mask(const DTensor& y_true, const DTensor& y_pred) const override {
    if (!options_.ignore_class) return {};
    const DTensor labels = labels_of(y_true, y_pred);
    const auto ignored = static_cast<double>(*options_.ignore_class);
    return ops::not_equal(labels, scalar(ignored, labels.mesh(), labels.dtype()));
  }

 private:
  int64_t class_axis(const DTensor& y_pred) const {
    return normalize_axis(options_.axis, y_pred.rank(), name());
  }
  /// Returns the labels as int64, with the predictions' shape without the class axis.
  DTensor labels_of(const DTensor& y_true, const DTensor& y_pred) const {
    const int64_t axis = class_axis(y_pred);
    Shape shape = y_pred.shape();
    shape[static_cast<size_t>(axis)] = 1;
    const bool column = y_true.shape() == shape;
    shape.erase(shape.begin() + axis);
    if (!column && y_true.shape() != shape) {
      throw ShapeError(name(),
                       str("labels must have shape ", to_string(shape), " for predictions ",
                           to_string(y_pred.shape())),
                       to_string(y_true.shape()),
                       y_true.shape() == y_pred.shape()
                           ? "for one-hot labels use categorical_crossentropy"
                           : "give one class index per prediction");
    }
    return ops::cast(column ? ops::squeeze(y_true, {axis}) : y_true, at::kLong);
  }

  SparseCategoricalCrossentropyOptions options_;
};

DTensor categorical(const DTensor& y_true, const DTensor& y_pred,
                    const CategoricalCrossentropyOptions& options) {
  check_same_shape(options.name, y_true, y_pred);
  const int64_t axis = normalize_axis(options.axis, y_pred.rank(), options.name);
  const DTensor labels =
      axis_last(smoothed(y_true, options.label_smoothing, y_true.size(axis)), axis);
  const DTensor predictions = axis_last(y_pred, axis);
  if (options.from_logits) return ops::softmax_cross_entropy(predictions, labels);
  const DTensor p = clip_probabilities(predictions / ops::sum(predictions, {-1}, true));
  return ops::neg(ops::sum(labels * ops::log(p), {-1}));
}

DTensor binary(const DTensor& y_true, const DTensor& y_pred,
               const BinaryCrossentropyOptions& options) {
  check_same_shape(options.name, y_true, y_pred);
  const int64_t axis = normalize_axis(options.axis, y_pred.rank(), options.name);
  const DTensor labels = smoothed(y_true, options.label_smoothing, 2);
  return ops::mean(binary_entropy(labels, y_pred, options.from_logits), {axis});
}

DTensor divergence(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  const DTensor labels = ops::clip(y_true, keras_epsilon, 1);
  return ops::sum(labels * ops::log(labels / ops::clip(y_pred, keras_epsilon, 1)), {-1});
}

DTensor poisson(const DTensor& y_true, const DTensor& y_pred, const LossOptions&) {
  return ops::mean(y_pred - y_true * ops::log(y_pred + keras_epsilon), {-1});
}

}  // namespace

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(
    SparseCategoricalCrossentropyOptions options)
    : LossHandle(std::shared_ptr<const Loss>(
          std::make_shared<SparseCategoricalCrossentropyLoss>(options))) {}
CategoricalCrossentropy::CategoricalCrossentropy(CategoricalCrossentropyOptions options)
    : LossHandle(function_loss("CategoricalCrossentropy", categorical, options)) {
  check_smoothing((*this)->name(), options.label_smoothing);
}
BinaryCrossentropy::BinaryCrossentropy(BinaryCrossentropyOptions options)
    : LossHandle(function_loss("BinaryCrossentropy", binary, options)) {
  check_smoothing((*this)->name(), options.label_smoothing);
}
KLDivergence::KLDivergence(LossOptions options)
    : LossHandle(function_loss("KLDivergence", divergence, options)) {}
Poisson::Poisson(LossOptions options) : LossHandle(function_loss("Poisson", poisson, options)) {}

}  // namespace tessera
