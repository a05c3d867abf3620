#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/batch_loader.hpp>
#include <tessera/framework/training/callback_list.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/options.hpp>

namespace tessera {

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

/// The same of losses that stay on the devices until metrics are read.
class LossMean final : public Metric {
 public:
  using Metric::result;
  explicit LossMean(std::string name) : Metric(std::move(name)) {}
  std::string class_name() const override { return "Mean"; }
  Json config() const override { return {{"name", name()}}; }
  /// Not of labels: add_loss() is what it is fed with.
  void update(const DTensor&, const DTensor&, const DTensor&) override {}
  void add_loss(const DTensor& loss, int64_t rows);
  double result(const std::vector<double>& totals) const override;
};

/// What compile() chose for one output of a model.
struct CompiledOutput {
  LossRef loss;                    ///< null: none
  double weight = 1;               ///< of the loss in the total
  std::shared_ptr<LossMean> mean;  ///< of the loss, where several outputs have one
  std::vector<std::shared_ptr<Metric>> metrics;
  std::vector<std::shared_ptr<Metric>> weighted_metrics;
};

/// What compile() leaves in a model.
struct Model::Training {
  CompileOptions options;
  OptimizerRef optimizer;  ///< null: none
  LayoutMap layouts;
  bool placed = false;
  bool stop = false;  ///< whether training is to end
  RowMean loss;       ///< since reset_metrics()
  FitPosition position;
  History history;
  Logs epoch_logs;          ///< of the last epoch
  bool epoch_ends = false;  ///< whether they are to go into history yet
  /// What metric_totals() gave to an epoch that goes on, until its metrics are known.
  Json restored = nullptr;
  /// Empty until the first batch, whose shapes choose some.
  std::vector<CompiledOutput> outputs;
  std::vector<std::pair<std::string, std::shared_ptr<Metric>>> metrics;

  /// Makes outputs and metrics for a first batch. Throws ConfigError.
  void choose(std::vector<std::string> names, const Batch& batch,
              const std::vector<DTensor>& y_pred);
  void reset_metrics();
  /// The same, but for an epoch that goes on at position.step.
  void begin_epoch();
  /// Loss and metrics by name, alphabetically. Collective.
  Logs logs() const;
  /// Forgets the fit before; tells callbacks that an epoch ends, and keeps what it gave.
  void begin_fit(int64_t epoch);
  void end_epoch(int64_t epoch, const CallbackList& callbacks);
  /// Runs every batch through `step`, telling the callbacks; ends early if training is to stop.
  void run(Phase phase, BatchLoader& loader, const CallbackList& callbacks,
           const std::function<void(Examples&&, int64_t step)>& step);
  /// Does what may fail, or wish to stop, on one process alone, such as reading and writing files;
  /// then every process stops or throws in the same step. Collective.
  void agree(const std::function<void()>& local);
  /// Steps on a batch that count in `loss`; the batch's loss.
  double train(Model& model, Examples&& examples);
  double test(Model& model, Examples&& examples);
  /// Every output, whole.
  std::vector<at::Tensor> predict(Model& model, Examples&& examples);
  /// Runs validation or evaluation and gives its logs.
  Logs evaluate(Model& model, BatchLoader& loader, const CallbackList& callbacks);

 private:
  void restore_metrics();
  Batch prepare(Model& model, Examples&& examples);
  void name_metrics(const std::vector<std::string>& names);
};

/// The values of metrics that metric_totals() gave; none of null.
Logs restored_values(const Json& totals);

/// Shapes of data's inputs with an unknown number of rows.
Shapes batch_shapes(const DatasetRef& data);

/// The number in a loss, reduced if it is pending. Collective.
double read_loss(const DTensor& loss);

}  // namespace tessera
