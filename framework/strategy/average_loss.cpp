#include <tessera/framework/strategy/strategy.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/ops/ops.hpp>

namespace tessera::strategy {

using namespace tessera::detail;

namespace {

constexpr const char* loss_function = "compute_average_loss";

/// Multiplies a loss by weights, whose first axis is the batch.
DTensor weighted(const DTensor& loss, const DTensor& weight) {
  check_weights("compute_average_loss, sample_weight", loss.shape(), weight.shape());
  const auto [values, weights] = align_ranks(loss, weight);
  return values * ops::cast(weights, loss.dtype());
}

}  // namespace

DTensor compute_average_loss(const DTensor& per_example_loss, const DTensor& sample_weight,
                             std::optional<int64_t> global_batch_size) {
  if (!per_example_loss.defined() || per_example_loss.rank() < 1) {
    throw ShapeError(loss_function, "per_example_loss has an axis of examples",
                     per_example_loss.defined() ? "shape ()" : "an undefined tensor",
                     "make the loss with Reduction::none");
  }
  const int64_t rows = global_batch_size.value_or(per_example_loss.shape()[0]);
  if (rows < 1) {
    throw ConfigError(str(loss_function, ", global_batch_size"), "a batch has at least one row",
                      str(rows), "leave it out to divide by the actual rows");
  }
  const DTensor loss =
      sample_weight.defined() ? weighted(per_example_loss, sample_weight) : per_example_loss;
  return ops::sum(loss) / static_cast<double>(rows);
}

DTensor scale_regularization_loss(const DTensor& loss) { return ops::sum(loss); }

DTensor scale_regularization_loss(const std::vector<DTensor>& losses) {
  if (losses.empty()) return scalar(0, default_mesh());
  DTensor total = ops::sum(losses[0]);
  for (size_t i = 1; i < losses.size(); ++i) total = total + ops::sum(losses[i]);
  return total;
}

}  // namespace tessera::strategy
