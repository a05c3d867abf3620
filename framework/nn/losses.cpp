#include <tessera/framework/nn/losses.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/cross_entropy.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>

namespace tessera {
namespace {

/// Keras' backend.epsilon(): probabilities stay this far from 0 and 1.
constexpr double epsilon = 1e-7;

DTensor clip_probabilities(const DTensor& p) { return ops::clip(p, epsilon, 1 - epsilon); }

void check_smoothing(const std::string& name, double smoothing) {
  if (smoothing >= 0 && smoothing <= 1) return;
  throw ConfigError(name, "label_smoothing lies in [0, 1]", str(smoothing), "use 0 for none");
}

void check_same_shape(const std::string& name, const DTensor& y_true, const DTensor& y_pred) {
  if (y_true.shape() == y_pred.shape()) return;
  throw ShapeError(name, "labels have the shape of the predictions, " + to_string(y_pred.shape()),
                   to_string(y_true.shape()), "reshape the labels or the model's output");
}

class SparseCategoricalCrossentropyLoss : public Loss {
 public:
  explicit SparseCategoricalCrossentropyLoss(const SparseCategoricalCrossentropyOptions& options)
      : Loss(options.reduction, options.name), options_(options) {}
  std::string class_name() const override { return "SparseCategoricalCrossentropy"; }
  Json config() const override {
    return {{"from_logits", options_.from_logits},
            {"reduction", to_string(reduction())},
            {"name", name()}};
  }
  DTensor call(const DTensor& y_true, const DTensor& y_pred) const override {
    const bool column = y_true.rank() == y_pred.rank() && y_true.rank() > 0 && y_true.size(-1) == 1;
    const DTensor labels = column ? ops::squeeze(y_true, {-1}) : y_true;
    const DTensor logits = options_.from_logits ? y_pred : ops::log(clip_probabilities(y_pred));
    return ops::sparse_softmax_cross_entropy(logits, ops::cast(labels, at::kLong));
  }

 private:
  SparseCategoricalCrossentropyOptions options_;
};

DTensor axis_last(const DTensor& x, int64_t axis) {
  std::vector<int64_t> order;
  for (int64_t a = 0; a < x.rank(); ++a) {
    if (a != axis) order.push_back(a);
  }
  order.push_back(axis);
  return axis == x.rank() - 1 ? x : ops::transpose(x, order);
}

class CategoricalCrossentropyLoss : public Loss {
 public:
  explicit CategoricalCrossentropyLoss(const CategoricalCrossentropyOptions& options)
      : Loss(options.reduction, options.name), options_(options) {
    check_smoothing(options.name, options.label_smoothing);
  }
  std::string class_name() const override { return "CategoricalCrossentropy"; }
  Json config() const override {
    return {{"from_logits", options_.from_logits},
            {"label_smoothing", options_.label_smoothing},
            {"axis", options_.axis},
            {"reduction", to_string(reduction())},
            {"name", name()}};
  }
  DTensor call(const DTensor& y_true, const DTensor& y_pred) const override {
    check_same_shape(name(), y_true, y_pred);
    const int64_t axis = normalize_axis(options_.axis, y_pred.rank(), name());
    DTensor labels = axis_last(ops::cast(y_true, y_pred.dtype()), axis);
    const DTensor predictions = axis_last(y_pred, axis);
    if (const double s = options_.label_smoothing; s > 0) {
      labels = ops::scale(labels, 1 - s) + s / static_cast<double>(labels.size(-1));
    }
    if (options_.from_logits) return ops::softmax_cross_entropy(predictions, labels);
    const DTensor p = clip_probabilities(predictions / ops::sum(predictions, {-1}, true));
    return ops::neg(ops::sum(labels * ops::log(p), {-1}));
  }

 private:
  CategoricalCrossentropyOptions options_;
};

class BinaryCrossentropyLoss : public Loss {
 public:
  explicit BinaryCrossentropyLoss(const BinaryCrossentropyOptions& options)
      : Loss(options.reduction, options.name), options_(options) {
    check_smoothing(options.name, options.label_smoothing);
  }
  std::string class_name() const override { return "BinaryCrossentropy"; }
  Json config() const override {
    return {{"from_logits", options_.from_logits},
            {"label_smoothing", options_.label_smoothing},
            {"reduction", to_string(reduction())},
            {"name", name()}};
  }
  DTensor call(const DTensor& y_true, const DTensor& y_pred) const override {
    check_same_shape(name(), y_true, y_pred);
    DTensor labels = ops::cast(y_true, y_pred.dtype());
    const double s = options_.label_smoothing;
    if (s > 0) labels = ops::scale(labels, 1 - s) + s / 2;
    const DTensor each = options_.from_logits ? ops::sigmoid_cross_entropy(y_pred, labels)
                                              : from_probabilities(labels, y_pred);
    return ops::mean(each, {-1});
  }

 private:
  static DTensor from_probabilities(const DTensor& labels, const DTensor& y_pred) {
    const DTensor p = clip_probabilities(y_pred);
    const DTensor one = labels * ops::log(p);
    const DTensor zero = (ops::neg(labels) + 1) * ops::log(ops::neg(p) + 1);
    return ops::neg(one + zero);
  }

  BinaryCrossentropyOptions options_;
};

class MeanSquaredErrorLoss : public Loss {
 public:
  explicit MeanSquaredErrorLoss(const MeanSquaredErrorOptions& options)
      : Loss(options.reduction, options.name) {}
  std::string class_name() const override { return "MeanSquaredError"; }
  Json config() const override { return {{"reduction", to_string(reduction())}, {"name", name()}}; }
  DTensor call(const DTensor& y_true, const DTensor& y_pred) const override {
    return ops::mean(ops::square(y_pred - ops::cast(y_true, y_pred.dtype())), {-1});
  }
};

template <class Made, class Options>
std::shared_ptr<const Loss> made(const Options& options) {
  return std::make_shared<Made>(options);
}

}  // namespace

SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(
    SparseCategoricalCrossentropyOptions options)
    : LossRef(made<SparseCategoricalCrossentropyLoss>(options)) {}
CategoricalCrossentropy::CategoricalCrossentropy(CategoricalCrossentropyOptions options)
    : LossRef(made<CategoricalCrossentropyLoss>(options)) {}
BinaryCrossentropy::BinaryCrossentropy(BinaryCrossentropyOptions options)
    : LossRef(made<BinaryCrossentropyLoss>(options)) {}
MeanSquaredError::MeanSquaredError(MeanSquaredErrorOptions options)
    : LossRef(made<MeanSquaredErrorLoss>(options)) {}

}  // namespace tessera
