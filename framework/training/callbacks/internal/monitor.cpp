#include <tessera/framework/training/callbacks/internal/monitor.hpp>

#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/base/internal/strings.hpp>
#include <tessera/framework/nn/metric.hpp>
#include <tessera/framework/training/trainer.hpp>

namespace tessera::detail {
namespace {

bool ends_with_any(const std::string& name, std::initializer_list<const char*> endings) {
  for (const std::string ending : endings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

/// Returns whether a metric class should rise; nothing if neither direction is better (a mean).
std::optional<bool> direction(const std::string& class_name) {
  if (ends_with_any(class_name, {"Error", "Crossentropy", "Hinge", "KLDivergence", "Poisson"})) {
    return false;
  }
  if (ends_with_any(class_name, {"Accuracy", "AUC", "Precision", "Recall", "F1Score", "FBetaScore",
                                 "CosineSimilarity", "AtSpecificity", "AtSensitivity",
                                 "AtPrecision", "AtRecall", "R2Score", "IoU"})) {
    return true;
  }
  return std::nullopt;
}

}  // namespace

Monitor::Monitor(std::string callback, MonitorOptions options)
    : callback_(std::move(callback)), options_(std::move(options)) {
  const std::vector<std::string> modes = {"auto", "max", "min"};
  options_.min_delta = std::abs(options_.min_delta);
  for (const std::string& mode : modes) {
    if (options_.mode == mode) return;
  }
  throw ConfigError(callback_, "mode is one of " + quoted_list(modes), in_quotes(options_.mode),
                    suggestion(options_.mode, modes));
}

bool Monitor::rises(const Trainer& model) const {
  if (options_.mode != "auto") return options_.mode == "max";
  const std::string& full = options_.monitor;
  const std::string name = full.starts_with("val_") ? full.substr(4) : full;
  if (name == "loss") return false;
  for (const auto& [known, metric] : model.metrics()) {
    if (known != name) continue;
    if (const auto known_direction = direction(metric->class_name())) return *known_direction;
  }
  if (name.ends_with("_loss")) return false;
  throw ConfigError(callback_, "mode \"auto\" needs a loss or a metric with a known direction",
                    in_quotes(full), "pass mode \"min\" or \"max\"");
}

bool Monitor::improved(double value, const std::optional<double>& reference, const Trainer& model) {
  if (!rises_) rises_ = rises(model);
  if (std::isnan(value)) return false;
  if (!reference) return true;
  return *rises_ ? value - options_.min_delta > *reference
                 : value + options_.min_delta < *reference;
}

std::string Monitor::names_in(const Logs& logs) {
  std::vector<std::string> names;
  for (const auto& [name, value] : logs) names.push_back(name);
  return join(names, ",");
}

}  // namespace tessera::detail
