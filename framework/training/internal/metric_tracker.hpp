#pragma once

#include <functional>
#include <map>
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
#include <tessera/framework/training/logs.hpp>
#include <tessera/framework/training/options.hpp>
#include <tessera/framework/training/step_values.hpp>

namespace tessera::detail {

/// Totals of one step, which are added to loss and metrics.
struct StepTotals {
  /// Sum of the loss over rows; number of rows, 0 if the data ended before this step.
  double loss = 0;
  int64_t rows = 0;
  bool logs_loss = true;  ///< whether the step names its loss "loss"
  struct MetricTotals {
    std::string name;            ///< name in the logs
    std::vector<double> totals;  ///< result of Metric::totals()
    double value = 0;            ///< value of this step alone
  };
  std::vector<MetricTotals> metrics = {};
};

/// The mean of losses over rows: a batch is weighted by its rows.
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

/// Throws ShapeError unless a step's loss, or its value of another name, is one number.
void check_one_number(const DTensor& value, const std::string& name = "loss");

/// A mean of losses over rows, kept on the devices until metrics are read.
class LossMean final : public Metric {
 public:
  using Metric::result;
  explicit LossMean(std::string name) : Metric(std::move(name)) {}
  std::string class_name() const override { return "Mean"; }
  Json config() const override { return {{"name", name()}}; }
  bool can_be_replayed() const override { return true; }
  /// Does nothing: this metric is updated by add_loss().
  void update(const DTensor&, const DTensor&, const DTensor&) override {}
  void add_loss(const DTensor& loss, int64_t rows);
  /// Whether add_loss() was called since reset().
  bool has_loss() const { return known_totals() > 0; }
  double result(const std::vector<double>& totals) const override;
};

/// Loss and metrics of one output of a model, chosen from compile()'s options.
struct CompiledOutput {
  LossHandle loss;                 ///< null: none
  double weight = 1;               ///< the loss's factor in the total
  std::shared_ptr<LossMean> mean;  ///< mean of the loss, if several outputs have a loss
  std::vector<std::shared_ptr<Metric>> metrics;
  std::vector<std::shared_ptr<Metric>> weighted_metrics;
};

/// Sums of metrics on the devices, by the metrics' names in logs.
using MetricSums = std::map<std::string, DTensor>;

/// Losses and metrics of a compiled model: chosen on the first batch (some depend on its shapes),
/// updated by every step, and read as logs.
class MetricTracker {
 public:
  /// `model`, whose layers may have metrics of their own, must outlive the tracker.
  MetricTracker(const CompileOptions& options, const Layer& model)
      : options_(options), model_(model) {}

  /// Throws ConfigError for a name in compile() that is not an output's.
  static void check_names(const CompileOptions& options, const std::vector<std::string>& outputs);
  /// Whether losses and metrics are chosen, and the batch has labels for each output.
  bool fits(const Batch& batch, const std::vector<DTensor>& y_pred) const {
    return !outputs_.empty() && batch.y.size() == y_pred.size();
  }
  /// Makes losses and metrics for the first batch. Throws ConfigError, for a later batch without
  /// labels for each output, too.
  void choose(std::vector<std::string> names, const Batch& batch,
              const std::vector<DTensor>& y_pred);
  /// Empty before the first batch.
  const std::vector<CompiledOutput>& outputs() const { return outputs_; }
  /// Whether a metric reads the predictions of an output, or of any; true before the first batch.
  bool reads_predictions(size_t output) const;
  bool reads_predictions() const;
  /// Returns the metrics by their names in logs: after the first batch the outputs' losses and the
  /// compiled metrics, then the named values of steps, then the metrics of layers.
  NamedMetrics metrics() const;
  /// Whether logs have a "loss": not if the steps' named values do not.
  bool logs_loss() const;

  /// Returns the mean loss since reset().
  const RowMean& loss() const { return loss_; }
  void add_loss(double value, int64_t rows) {
    loss_.add(value, rows);
    // The step has chosen its metrics.
    forget_restored();
  }
  /// Adds the named values of a step to their means, and returns its loss, which add_loss() takes
  /// once it is read. Throws ConfigError for a name that is a metric's.
  DTensor take(const StepValues& values, int64_t rows);
  void reset();
  /// Returns running totals and values, for Trainer::metric_totals(). Collective.
  Json totals() const;
  /// Returns loss and metrics by name, alphabetically. Collective.
  Logs logs() const { return logs_of(totals()); }
  Logs logs_of(const Json& totals) const;

  /// Returns the sums on the devices that totals() resolves, by the metrics' names: results of
  /// stacked_sums(). None if other processes run the steps.
  MetricSums sums() const;

  /// Makes a resumed epoch continue from these totals once its metrics are known, with `sums`,
  /// results of sums(), to the bit. Throws ConfigError for anything but a result of totals().
  void set_restored(const Json& totals, MetricSums sums = {});
  const Json& restored() const { return restored_.totals; }
  void forget_restored() { restored_ = {}; }
  /// Calls reset(), and then restores the totals of an epoch that resumes after its first step.
  void begin_epoch(int64_t first_step);

  // Steps run by other processes.

  /// Makes totals() return the sums of add() from now on.
  void begin_sums() { sums_.emplace(); }
  void end_sums() { sums_.reset(); }
  void add(const StepTotals& step);

 private:
  /// Totals and sums with which a resumed epoch goes on.
  struct Restored {
    Json totals = nullptr;
    MetricSums sums = {};
  };
  void name_metrics(const std::vector<std::string>& names);
  void restore_metrics();
  static void restore(const NamedMetrics& metrics, const Restored& saved);
  void restore_sums();
  Json summed() const;

  /// The mean of a named value of steps.
  struct StepMean {
    std::string name;
    bool stands_for_loss = false;  ///< whether its steps have no value "loss"
    std::shared_ptr<LossMean> mean;
  };
  LossMean& mean_of(const std::string& name, bool stands_for_loss);

  CompileOptions options_;
  const Layer& model_;
  std::vector<CompiledOutput> outputs_;
  NamedMetrics metrics_;  ///< those of outputs_
  std::vector<StepMean> step_means_;
  RowMean loss_;
  /// Until the first step of a resumed epoch, also where the metrics are known before: a process
  /// that joins others reads the same as they.
  Restored restored_;
  /// Means of these totals, for step_means_ that are not known yet.
  Restored restored_means_;
  /// Totals added by steps of other processes; `value` is a sum over rows.
  std::optional<std::vector<StepTotals::MetricTotals>> sums_;
  bool sums_log_loss_ = true;
};

}  // namespace tessera::detail
