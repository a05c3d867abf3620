#include <tessera/metrics/categorical_accuracy.hpp>

#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/metrics/mean.hpp>

namespace tessera {
namespace {

class CategoricalAccuracyMetric : public MeanMetric {
 public:
  explicit CategoricalAccuracyMetric(const CategoricalAccuracyOptions& options)
      : MeanMetric(options.name) {}
  std::string class_name() const override { return "CategoricalAccuracy"; }

 protected:
  DTensor values(const DTensor& y_true, const DTensor& y_pred) const override {
    return ops::equal(ops::argmax(y_true), ops::argmax(y_pred));
  }
};

}  // namespace

CategoricalAccuracy::CategoricalAccuracy(CategoricalAccuracyOptions options)
    : MetricRef(std::make_shared<CategoricalAccuracyMetric>(options)) {}

}  // namespace tessera
