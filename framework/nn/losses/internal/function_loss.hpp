#pragma once

#include <memory>
#include <utility>

#include <tessera/framework/nn/config/option_fields.hpp>
#include <tessera/framework/nn/internal/sample_weights.hpp>
#include <tessera/framework/nn/losses/losses.hpp>
#include <tessera/framework/ops/elementwise.hpp>

namespace tessera::detail {

template <class Visit>
void fields(LossOptions& o, const Visit& visit) {
  visit("reduction", o.reduction);
  visit("name", o.name);
}

/// The labels that a loss takes: labels that broadcast with the predictions, cast to their dtype,
/// or any labels, unchanged.
enum class Labels : uint8_t { like_predictions, any };

/// A loss given by a function of labels, predictions and options. An empty name becomes the class
/// name in snake_case.
template <class Options>
class FunctionLoss final : public Loss {
 public:
  using Function = DTensor (*)(const DTensor& y_true, const DTensor& y_pred, const Options&);
  FunctionLoss(const char* class_name, Function function, Options options, Labels labels)
      : Loss(options.reduction, options.name.empty() ? snake_case(class_name) : options.name),
        class_name_(class_name),
        function_(function),
        labels_(labels),
        options_(std::move(options)) {
    options_.name = name();
  }
  std::string class_name() const override { return class_name_; }
  Json config() const override { return config_of(options_); }
  bool can_be_replayed() const override { return true; }
  DTensor call(const DTensor& y_true, const DTensor& y_pred) const override {
    if (labels_ == Labels::any) return function_(y_true, y_pred, options_);
    check_labels(name(), y_true.shape(), y_pred.shape());
    return function_(ops::cast(y_true, y_pred.dtype()), y_pred, options_);
  }

 private:
  const char* class_name_;
  Function function_;
  Labels labels_;
  Options options_;
};

/// Creates the FunctionLoss of a function, for a handle.
template <class Options>
std::shared_ptr<const Loss> function_loss(const char* class_name,
                                          typename FunctionLoss<Options>::Function function,
                                          Options options,
                                          Labels labels = Labels::like_predictions) {
  return std::make_shared<FunctionLoss<Options>>(class_name, function, std::move(options), labels);
}

}  // namespace tessera::detail
