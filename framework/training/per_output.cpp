#include <tessera/framework/training/per_output.hpp>

#include <algorithm>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>

namespace tessera {

using namespace detail;

namespace {

/// Kind of labels, by the shapes of labels and predictions.
enum class Labels : uint8_t { binary, sparse, categorical };

Labels labels_kind(const Shape& y_true, const Shape& y_pred) {
  const int64_t classes = y_pred.empty() ? 1 : y_pred.back();
  if (classes == 1) return Labels::binary;
  const bool one_number = !y_true.empty() && y_true.back() == 1;
  return y_true.size() < y_pred.size() || one_number ? Labels::sparse : Labels::categorical;
}

std::string metric_texts(const std::vector<MetricHandle>& metrics) {
  std::string all;
  for (const MetricHandle& metric : metrics) {
    const auto& made = metric.get();
    all += (made ? made->class_name() + made->config().dump() : metric.text()) + "; ";
  }
  return all;
}

}  // namespace

size_t detail::output_position(const std::string& argument, const std::string& name,
                               const std::vector<std::string>& outputs) {
  const auto found = std::find(outputs.begin(), outputs.end(), name);
  if (found != outputs.end()) return static_cast<size_t>(found - outputs.begin());
  throw ConfigError("compile", argument + " names outputs of the model", in_quotes(name),
                    suggestion(name, outputs));
}

void detail::check_one_each(const std::string& argument, size_t entries,
                            const std::vector<std::string>& outputs) {
  if (entries == outputs.size()) return;
  throw ConfigError("compile",
                    str(argument, " has one entry for each of the ", outputs.size(), " outputs ",
                        quoted_list(outputs)),
                    str(entries, " entries"), "give one each, or name the outputs");
}

LossChoice::LossChoice(const char* name) : name_(name) {
  by_shape_ = name_ == "crossentropy" || name_ == "ce";
  if (!by_shape_) loss_ = LossHandle(name);
}

LossHandle LossChoice::loss(const Shape& y_true, const Shape& y_pred) const {
  if (!by_shape_) return loss_;
  switch (labels_kind(y_true, y_pred)) {
    case Labels::binary:
      return "binary_crossentropy";
    case Labels::sparse:
      return "sparse_categorical_crossentropy";
    case Labels::categorical:
      return "categorical_crossentropy";
  }
  return {};
}

std::string LossChoice::text() const {
  if (by_shape_) return "crossentropy";
  return loss_ ? loss_->class_name() + loss_->config().dump() : "none";
}

MetricsChoice::MetricsChoice(const std::map<std::string, std::vector<MetricHandle>>& named) {
  for (const auto& [output, metrics] : named) {
    named_.emplace_back(output, std::initializer_list<MetricHandle>());
    named_.back().metrics = metrics;
  }
}

std::string MetricsChoice::text() const {
  std::string all = metric_texts(list_);
  for (const auto& list : lists_) all += "[" + metric_texts(list) + "]";
  for (const OutputMetrics& output : named_)
    all += output.name + ": " + metric_texts(output.metrics);
  return all;
}

Json MetricsChoice::json(const std::function<Json(const MetricHandle&)>& one) const {
  const auto all = [&](const std::vector<MetricHandle>& metrics) {
    Json list = Json::array();
    for (const MetricHandle& metric : metrics) list.push_back(one(metric));
    return list;
  };
  if (!list_.empty()) return all(list_);
  Json json;
  if (!lists_.empty()) json = Json::array();
  if (!named_.empty()) json = Json::object();
  for (const auto& list : lists_) json.push_back(list.empty() ? Json() : all(list));
  for (const OutputMetrics& output : named_) json[output.name] = all(output.metrics);
  return json;
}

std::vector<std::vector<MetricHandle>> MetricsChoice::values(
    const std::string& argument, const std::vector<std::string>& outputs) const {
  if (!lists_.empty()) {
    check_one_each(argument, lists_.size(), outputs);
    return lists_;
  }
  if (outputs.size() == 1 && named_.empty()) return {list_};
  std::vector<std::vector<MetricHandle>> values(outputs.size());
  if (!list_.empty()) check_one_each(argument, list_.size(), outputs);
  for (size_t i = 0; i < list_.size(); ++i) values[i] = {list_[i]};
  for (const OutputMetrics& output : named_) {
    values[output_position(argument, output.name, outputs)] = output.metrics;
  }
  return values;
}

std::shared_ptr<Metric> detail::metric_for(const MetricHandle& metric, const Shape& y_true,
                                           const Shape& y_pred) {
  if (metric.get()) return metric.get();
  const std::string& name = metric.text();
  if (name != "accuracy" && name != "acc") return make_metric(name, name);
  switch (labels_kind(y_true, y_pred)) {
    case Labels::binary:
      return make_metric("binary_accuracy", name);
    case Labels::sparse:
      return make_metric("sparse_categorical_accuracy", name);
    case Labels::categorical:
      return make_metric("categorical_accuracy", name);
  }
  return nullptr;
}

}  // namespace tessera
