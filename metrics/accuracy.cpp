#include <tessera/metrics/accuracy.hpp>

#include <tessera/framework/nn/weighting.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/metrics/mean.hpp>

namespace tessera {
namespace {

class AccuracyMetric : public MeanMetric {
 public:
  explicit AccuracyMetric(const AccuracyOptions& options) : MeanMetric(options.name) {}
  std::string class_name() const override { return "Accuracy"; }

 protected:
  DTensor values(const DTensor& y_true, const DTensor& y_pred) const override {
    const auto [labels, predictions] = match_ranks(ops::cast(y_true, y_pred.dtype()), y_pred);
    return ops::equal(labels, predictions);
  }
};

}  // namespace

Accuracy::Accuracy(AccuracyOptions options)
    : MetricRef(std::make_shared<AccuracyMetric>(options)) {}

}  // namespace tessera
