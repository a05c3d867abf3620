#include <tessera/metrics/sparse_categorical_accuracy.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/metrics/mean.hpp>

namespace tessera {
namespace {

class SparseCategoricalAccuracyMetric : public MeanMetric {
 public:
  explicit SparseCategoricalAccuracyMetric(const SparseCategoricalAccuracyOptions& options)
      : MeanMetric(options.name) {}
  std::string class_name() const override { return "SparseCategoricalAccuracy"; }

 protected:
  DTensor values(const DTensor& y_true, const DTensor& y_pred) const override {
    const DTensor labels = ops::cast(y_true, at::kLong);
    const DTensor guesses = ops::argmax(y_pred);
    const bool column = labels.rank() == guesses.rank() + 1 && labels.size(-1) == 1;
    return ops::equal(labels, column ? ops::expand_dims(guesses, -1) : guesses);
  }
};

}  // namespace

SparseCategoricalAccuracy::SparseCategoricalAccuracy(SparseCategoricalAccuracyOptions options)
    : MetricRef(std::make_shared<SparseCategoricalAccuracyMetric>(options)) {}

}  // namespace tessera
