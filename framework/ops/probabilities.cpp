#include <tessera/framework/base/error.hpp>
#include <tessera/framework/ops/cross_entropy.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/internal/sums.hpp>
#include <tessera/framework/ops/operand.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/ops/softmax.hpp>

namespace tessera::ops {

using namespace detail;

namespace {

/// Throws ShapeError unless target and output have one shape.
void check_target(const std::string& where, const DTensor& target, const DTensor& output) {
  if (target.shape() == output.shape()) return;
  throw ShapeError(where, "target and output have one shape",
                   to_string(target.shape()) + " and " + to_string(output.shape()),
                   "reshape the target");
}

/// Returns probabilities within Keras' epsilon of 0 and 1, of which the logarithm is finite.
DTensor inner_probabilities(const DTensor& x) {
  constexpr double epsilon = 1e-7;
  return clip(x, epsilon, 1 - epsilon);
}

DTensor log_probabilities(const DTensor& output, bool from_logits, int64_t axis) {
  if (from_logits) return log_softmax(output, axis);
  return log(inner_probabilities(output / sum(output, {axis}, true)));
}

}  // namespace

DTensor binary_crossentropy(const DTensor& target, const DTensor& output, bool from_logits) {
  check_target("binary_crossentropy", target, output);
  const DTensor wide = widened(output), labels = cast(target, wide.dtype());
  if (from_logits) return cast(sigmoid_cross_entropy(wide, labels), output.dtype());
  const DTensor p = inner_probabilities(wide);
  return cast(-(labels * log(p) + (1.0 - labels) * log(1.0 - p)), output.dtype());
}

DTensor categorical_crossentropy(const DTensor& target, const DTensor& output, bool from_logits,
                                 int64_t axis) {
  check_target("categorical_crossentropy", target, output);
  const int64_t a = normalize_axis(axis, output.rank(), "categorical_crossentropy");
  const DTensor wide = widened(output), labels = cast(target, wide.dtype());
  return cast(-sum(labels * log_probabilities(wide, from_logits, a), {a}), output.dtype());
}

DTensor sparse_categorical_crossentropy(const DTensor& target, const DTensor& output,
                                        bool from_logits) {
  const bool has_column =
      target.rank() > 0 && target.rank() == output.rank() && target.size(-1) == 1;
  const DTensor labels = has_column ? squeeze(target, {-1}) : target;
  if (from_logits) return sparse_softmax_cross_entropy(output, labels);
  // The softmax of logarithms of probabilities is these probabilities.
  const int64_t a = normalize_axis(-1, output.rank(), "sparse_categorical_crossentropy");
  const DTensor logits = log_probabilities(widened(output), false, a);
  return cast(sparse_softmax_cross_entropy(logits, labels), output.dtype());
}

}  // namespace tessera::ops
