#include <tessera/framework/nn/losses/internal/cross_entropy_common.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/framework/ops/cross_entropy.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera::detail {

DTensor one_less(const DTensor& x) { return ops::neg(x) + 1; }

DTensor clip_probabilities(const DTensor& p) {
  return ops::clip(p, keras_epsilon, 1 - keras_epsilon);
}

DTensor smoothed(const DTensor& labels, double smoothing, int64_t classes) {
  if (smoothing == 0) return labels;
  return ops::scale(labels, 1 - smoothing) + smoothing / static_cast<double>(classes);
}

DTensor binary_entropy(const DTensor& labels, const DTensor& y_pred, bool from_logits) {
  if (from_logits) return ops::sigmoid_cross_entropy(y_pred, labels);
  const DTensor p = clip_probabilities(y_pred);
  const DTensor one = labels * ops::log(p);
  const DTensor zero = (ops::neg(labels) + 1) * ops::log(ops::neg(p) + 1);
  return ops::neg(one + zero);
}

void check_smoothing(const std::string& name, double smoothing) {
  if (smoothing >= 0 && smoothing <= 1) return;
  throw ConfigError(name, "label_smoothing lies in [0, 1]", str(smoothing), "use 0 for none");
}

void check_same_shape(const std::string& name, const DTensor& y_true, const DTensor& y_pred) {
  if (y_true.shape() == y_pred.shape()) return;
  throw ShapeError(name, "labels have the shape of the predictions, " + to_string(y_pred.shape()),
                   to_string(y_true.shape()), "reshape the labels or the model's output");
}

}  // namespace tessera::detail
