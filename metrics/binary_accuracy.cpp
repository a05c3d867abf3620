#include <tessera/metrics/binary_accuracy.hpp>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/nn/weighting.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/mean.hpp>

namespace tessera {
namespace {

class BinaryAccuracyMetric : public MeanMetric {
 public:
  explicit BinaryAccuracyMetric(const BinaryAccuracyOptions& options)
      : MeanMetric(options.name), threshold_(options.threshold) {
    if (threshold_ > 0 && threshold_ < 1) return;
    throw ConfigError(name(), "threshold lies between 0 and 1", str(threshold_), "use 0.5");
  }
  std::string class_name() const override { return "BinaryAccuracy"; }
  Json config() const override { return {{"name", name()}, {"threshold", threshold_}}; }

 protected:
  DTensor values(const DTensor& y_true, const DTensor& y_pred) const override {
    const auto [labels, predictions] = match_ranks(y_true, y_pred);
    const DTensor threshold = scalar(threshold_, predictions.mesh(), predictions.dtype());
    const DTensor positive = ops::greater(predictions, threshold);
    return ops::equal(labels, ops::cast(positive, labels.dtype()));
  }

 private:
  double threshold_;
};

}  // namespace

BinaryAccuracy::BinaryAccuracy(BinaryAccuracyOptions options)
    : MetricRef(std::make_shared<BinaryAccuracyMetric>(options)) {}

}  // namespace tessera
