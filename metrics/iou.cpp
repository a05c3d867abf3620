#include <tessera/metrics/iou.hpp>

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/comm_log.hpp>
#include <tessera/framework/nn/internal/epsilon.hpp>
#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/ops/elementwise.hpp>
#include <tessera/framework/ops/engine/dispatch.hpp>
#include <tessera/framework/ops/gather.hpp>
#include <tessera/framework/ops/reduce.hpp>
#include <tessera/framework/ops/segment.hpp>
#include <tessera/framework/ops/shape.hpp>
#include <tessera/framework/tensor/create.hpp>
#include <tessera/metrics/internal/metric_config.hpp>

namespace tessera {

using namespace detail;

template <class Visit>
void fields(IoUOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("dtype", o.dtype);
  visit("ignore_class", o.ignore_class);
  visit("sparse_y_true", o.sparse_y_true);
  visit("sparse_y_pred", o.sparse_y_pred);
  visit("axis", o.axis);
}

template <class Visit>
void fields(OneHotIoUOptions& o, const Visit& visit) {
  visit("name", o.name);
  visit("dtype", o.dtype);
  visit("ignore_class", o.ignore_class);
  visit("sparse_y_pred", o.sparse_y_pred);
  visit("axis", o.axis);
}

template <class Visit>
void fields(BinaryIoUOptions& o, const Visit& visit) {
  visit("target_class_ids", o.target_class_ids);
  visit("threshold", o.threshold);
  visit("name", o.name);
  visit("dtype", o.dtype);
}

namespace {

// Unlike in most metrics, dtype is an option here.
template <class MetricClass, class Options>
MetricHandle iou_of_targets(JsonObject& config) {
  const auto count = config.take<int64_t>("num_classes");
  const auto targets = config.take<std::vector<int64_t>>("target_class_ids");
  return MetricClass(count, targets, options_from<Options>(config));
}
template <class MetricClass, class Options>
MetricHandle iou_of_classes(JsonObject& config) {
  const auto count = config.take<int64_t>("num_classes");
  return MetricClass(count, options_from<Options>(config));
}

const Registered registered_iou(metric_factories(), {"io_u"}, iou_of_targets<IoU, IoUOptions>);
const Registered registered_mean_iou(metric_factories(), {"mean_io_u"},
                                     iou_of_classes<MeanIoU, IoUOptions>);
const Registered registered_one_hot_iou(metric_factories(), {"one_hot_io_u"},
                                        iou_of_targets<OneHotIoU, OneHotIoUOptions>);
const Registered registered_one_hot_mean_iou(metric_factories(), {"one_hot_mean_io_u"},
                                             iou_of_classes<OneHotMeanIoU, OneHotIoUOptions>);
const Registered registered_binary_iou(metric_factories(), {"binary_io_u"},
                                       made_of<BinaryIoU, BinaryIoUOptions>);

DTensor int64_like(int64_t value, const DTensor& like) {
  return scalar(static_cast<double>(value), like.mesh(), at::kLong);
}

/// Intersection over union. Totals: the confusion matrix of sample weights (label, prediction),
/// with a last column of predictions outside [0, num_classes).
class IoUMetric : public Metric {
 public:
  using Metric::result;
  /// `config` is the metric's configuration, including its name. With a threshold, predictions of
  /// at least that are of class 1.
  IoUMetric(const char* class_name, Json config, int64_t num_classes,
            std::vector<int64_t> target_class_ids, IoUOptions options,
            std::optional<double> threshold = std::nullopt)
      : Metric(config.at("name").get<std::string>()),
        class_name_(class_name),
        config_(std::move(config)),
        classes_(num_classes),
        columns_(num_classes + 1),
        targets_(std::move(target_class_ids)),
        options_(std::move(options)),
        threshold_(threshold),
        integer_weights_(options_.dtype.find("int") != std::string::npos) {
    if (num_classes < 1) {
      throw ConfigError(name(), "num_classes is at least 1", str(num_classes), "count the classes");
    }
    for (const int64_t target : targets_) {
      if (target >= 0 && target < num_classes) continue;
      throw ConfigError(name(), str("target_class_ids lie in [0, ", num_classes, ")"), str(target),
                        "name classes that there are");
    }
  }
  std::string class_name() const override { return class_name_; }
  Json config() const override { return config_; }
  bool can_be_replayed() const override { return true; }

  void update(const DTensor& y_true, const DTensor& y_pred, const DTensor& sample_weight) override {
    const NoRecording no_tape;
    check_scores(y_true.shape(), y_pred.shape());
    const DTensor predictions = predicted(y_pred);
    DTensor labels = shaped(
        options_.sparse_y_true ? ops::cast(y_true, at::kLong) : ops::argmax(y_true, options_.axis),
        predictions.shape(), "labels");
    DTensor weights = filled(labels.shape(), 1, at::kDouble, labels.layout().resolved());
    if (sample_weight.defined()) weights = weights * broadcast_weights(sample_weight, labels);
    if (options_.ignore_class) {
      const DTensor counts = ops::not_equal(labels, int64_like(*options_.ignore_class, labels));
      labels = ops::where(counts, labels, int64_like(0, labels));
      weights = weights * ops::cast(counts, at::kDouble);
    }
    const DTensor column =
        ops::where(is_class(predictions), predictions, int64_like(classes_, predictions));
    add(ops::segment_sum(weights, first_ids(labels) + column, classes_ * columns_));
  }

  void check_totals(size_t count) const override {
    const auto expected = static_cast<size_t>(classes_ * columns_);
    check_count(count == expected, str(expected, ", of ", classes_, " classes"), count);
  }

  double result(const std::vector<double>& totals) const override {
    if (totals.empty()) return 0;
    const auto count = static_cast<size_t>(classes_), columns = static_cast<size_t>(columns_);
    double sum = 0, present = 0;
    for (const int64_t target : targets_) {
      const auto c = static_cast<size_t>(target);
      const double hits = totals[c * columns + c];
      double all = -hits;
      for (size_t i = 0; i < columns; ++i) all += totals[c * columns + i];
      for (size_t i = 0; i < count; ++i) all += totals[i * columns + c];
      if (all <= 1e-9) continue;
      sum += hits / (all + keras_epsilon);
      ++present;
    }
    return sum / (present + keras_epsilon);
  }

 private:
  /// Throws ShapeError if labels and predictions are scores of different numbers of classes.
  void check_scores(const Shape& labels, const Shape& predictions) const {
    if (options_.sparse_y_true || options_.sparse_y_pred || threshold_) return;
    const auto classes = [&](const Shape& shape) {
      const auto rank = static_cast<int64_t>(shape.size());
      return shape[static_cast<size_t>(normalize_axis(options_.axis, rank, name()))];
    };
    if (classes(labels) == classes(predictions)) return;
    throw ShapeError(name(), "labels and predictions are scores of the same classes",
                     to_string(labels) + " and " + to_string(predictions),
                     "one-hot encode class indices, or set sparse_y_true");
  }

  /// Returns the number of the first element of each label's row. Throws ConfigError for a label
  /// that is no class.
  DTensor first_ids(const DTensor& labels) const {
    const at::Tensor rows = at::arange(classes_, at::kLong) * columns_;
    const std::string where = str(name(), ", labels");
    const CommLabel replayed(where);
    try {
      return ops::gather(pack(rows, Layout::replicated(labels.mesh(), 1)), labels);
    } catch (const Error&) {
      rethrow_at(where);
    }
  }

  DTensor predicted(const DTensor& y_pred) const {
    if (threshold_) {
      const DTensor wide = ops::cast(y_pred, at::kFloat);
      return ops::cast(ops::greater_equal(wide, scalar(*threshold_, wide.mesh())), at::kLong);
    }
    if (options_.sparse_y_pred) return ops::cast(y_pred, at::kLong);
    return ops::argmax(y_pred, options_.axis);
  }

  /// Reshapes to `shape` if needed. Keras flattens both; equal shapes need no resharding here.
  DTensor shaped(const DTensor& x, const Shape& shape, const char* what) const {
    if (x.shape() == shape) return x;
    if (x.numel() == numel(shape)) return ops::reshape(x, shape);
    throw ShapeError(name(), str("as many ", what, " as predictions, ", to_string(shape)),
                     to_string(x.shape()), "give one for each prediction");
  }

  DTensor broadcast_weights(const DTensor& sample_weight, const DTensor& labels) const {
    const DTensor truncated =
        integer_weights_ ? ops::cast(sample_weight, at::kLong) : sample_weight;
    const DTensor weights = ops::cast(truncated, at::kDouble);
    if (weights.numel() == 1) return ops::reshape(weights, {});
    if (weights.numel() == labels.numel()) return shaped(weights, labels.shape(), "sample weights");
    return checked_weights(name(), labels.shape(), weights);
  }

  DTensor is_class(const DTensor& x) const {
    return ops::logical_and(ops::greater_equal(x, int64_like(0, x)),
                            ops::less(x, int64_like(classes_, x)));
  }

  const char* class_name_;
  Json config_;
  int64_t classes_, columns_;
  std::vector<int64_t> targets_;
  IoUOptions options_;
  std::optional<double> threshold_;
  bool integer_weights_;
};

template <class Options>
Json config_with(const char* class_name, const Options& options, int64_t num_classes,
                 const std::vector<int64_t>* target_class_ids = nullptr) {
  Json config = named_config(class_name, options);
  config["num_classes"] = num_classes;
  if (target_class_ids) config["target_class_ids"] = *target_class_ids;
  return config;
}

std::vector<int64_t> all_classes(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(std::max<int64_t>(0, count)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

IoUOptions of_one_hot(const OneHotIoUOptions& options) {
  return {.name = options.name,
          .dtype = options.dtype,
          .ignore_class = options.ignore_class,
          .sparse_y_true = false,
          .sparse_y_pred = options.sparse_y_pred,
          .axis = options.axis};
}

}  // namespace

IoU::IoU(int64_t num_classes, std::vector<int64_t> target_class_ids, IoUOptions options)
    : MetricHandle(std::make_shared<IoUMetric>(
          "IoU", config_with("IoU", options, num_classes, &target_class_ids), num_classes,
          target_class_ids, options)) {}
MeanIoU::MeanIoU(int64_t num_classes, IoUOptions options)
    : MetricHandle(std::make_shared<IoUMetric>("MeanIoU",
                                               config_with("MeanIoU", options, num_classes),
                                               num_classes, all_classes(num_classes), options)) {}
OneHotIoU::OneHotIoU(int64_t num_classes, std::vector<int64_t> target_class_ids,
                     OneHotIoUOptions options)
    : MetricHandle(std::make_shared<IoUMetric>(
          "OneHotIoU", config_with("OneHotIoU", options, num_classes, &target_class_ids),
          num_classes, target_class_ids, of_one_hot(options))) {}
OneHotMeanIoU::OneHotMeanIoU(int64_t num_classes, OneHotIoUOptions options)
    : MetricHandle(std::make_shared<IoUMetric>(
          "OneHotMeanIoU", config_with("OneHotMeanIoU", options, num_classes), num_classes,
          all_classes(num_classes), of_one_hot(options))) {}
BinaryIoU::BinaryIoU(BinaryIoUOptions options)
    : MetricHandle(std::make_shared<IoUMetric>(
          "BinaryIoU", named_config("BinaryIoU", options), 2, options.target_class_ids,
          IoUOptions{.dtype = options.dtype}, options.threshold)) {}

}  // namespace tessera
