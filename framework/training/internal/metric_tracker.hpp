#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/json.hpp>
#include <tessera/framework/data/batch_loader.hpp>
#include <tessera/framework/nn/internal/layer_metrics.hpp>
#include <tessera/framework/nn/losses/loss.hpp>
#include <tessera/framework/nn/metric.hpp>
#include <tessera/framework/training/internal/step_executor.hpp>
#include <tessera/framework/training/logs.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera::detail {

/// The mean of losses over rows: a short batch counts for its rows.
class RowMean {
 public:
  RowMean() = default;
  RowMean(double sum, int64_t rows) : sum_(sum), rows_(rows) {}
  void add(double value, int64_t rows) {
    sum_ += value * static_cast<double>(rows);
    rows_ += rows;
  }
  double value() const { return rows_ ? sum_ / static_cast<double>(rows_) : 0; }
  double sum() const { return sum_; }
  int64_t rows() const { return rows_; }

 private:
  double sum_ = 0;
  int64_t rows_ = 0;
};

/// A mean of losses over rows that stays on the devices until metrics are read.
class LossMean final : public Metric {
 public:
  using Metric::result;
  explicit LossMean(std::string name) : Metric(std::move(name)) {}
  std::string class_name() const override { return "Mean"; }
  Json config() const override { return {{"name", name()}}; }
  bool can_be_replayed() const override { return true; }
  /// Does nothing: add_loss() feeds this metric, not labels.
  void update(const DTensor&, const DTensor&, const DTensor&) override {}
  void add_loss(const DTensor& loss, int64_t rows);
  double result(const std::vector<double>& totals) const override;
};

/// What compile() chose for one output of a model.
struct CompiledOutput {
  LossHandle loss;                 ///< null: none
  double weight = 1;               ///< the loss's factor in the total
  std::shared_ptr<LossMean> mean;  ///< mean of the loss, where several outputs have one
  std::vector<std::shared_ptr<Metric>> metrics;
  std::vector<std::shared_ptr<Metric>> weighted_metrics;
};

/// The losses and metrics of a compiled model: chosen by the first batch, whose shapes decide some,
/// added up step by step, and read as logs.
class MetricTracker {
 public:
  /// `model` has the layers that have metrics of their own; it outlives this.
  MetricTracker(const CompileOptions& options, const Layer& model)
      : options_(options), model_(model) {}

  /// Throws ConfigError for a name in compile() that is no output's.
  static void check_names(const CompileOptions& options, const std::vector<std::string>& outputs);
  /// Makes losses and metrics for a first batch; later ones are checked. Throws ConfigError.
  void choose(std::vector<std::string> names, const Batch& batch,
              const std::vector<DTensor>& y_pred);
  /// Empty before the first batch.
  const std::vector<CompiledOutput>& outputs() const { return outputs_; }
  /// The metrics by their names in logs: the outputs' losses and what compile() chose, once there
  /// was a batch, then those of layers.
  NamedMetrics metrics() const;

  /// The loss since reset().
  const RowMean& loss() const { return loss_; }
  void add_loss(double value, int64_t rows) { loss_.add(value, rows); }
  void reset();
  /// Running totals and values, as Trainer::metric_totals() gives them. Collective.
  Json totals() const;
  /// Loss and metrics by name, alphabetically. Collective.
  Logs logs() const { return logs_of(totals()); }
  Logs logs_of(const Json& totals) const;

  /// An epoch that goes on counts on from these totals once its metrics are known. Throws
  /// ConfigError for anything but what totals() gave.
  void set_restored(const Json& totals);
  const Json& restored() const { return restored_; }
  void forget_restored() { restored_ = nullptr; }
  /// reset(), but for an epoch that goes on at a later step than its first.
  void begin_epoch(int64_t first_step);

  // Where other processes make the steps.

  /// Has totals come from add() from now on.
  void begin_sums() { sums_.emplace(); }
  void end_sums() { sums_.reset(); }
  void add(const StepTotals& step);

 private:
  void name_metrics(const std::vector<std::string>& names);
  void restore_metrics();
  static void restore(const NamedMetrics& metrics, const Json& totals);
  void restore_sums();
  Json summed() const;

  CompileOptions options_;
  const Layer& model_;
  std::vector<CompiledOutput> outputs_;
  NamedMetrics metrics_;  ///< without those of layers
  RowMean loss_;
  /// What totals() gave to an epoch that goes on, until its metrics are known.
  Json restored_ = nullptr;
  /// What steps made elsewhere have added to the metrics; `value` is a sum over rows.
  std::optional<std::vector<StepTotals::Of>> sums_;
};

}  // namespace tessera::detail
