#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/framework/base/error.hpp>
#include <tessera/framework/comm/communicator.hpp>
#include <tessera/framework/comm/distributed.hpp>
#include <tessera/framework/comm/status.hpp>
#include <tessera/framework/model/model.hpp>
#include <tessera/framework/training/batch_loader.hpp>
#include <tessera/framework/training/callbacks/callback_list.hpp>
#include <tessera/framework/training/capture/step_capture.hpp>
#include <tessera/framework/training/history.hpp>
#include <tessera/framework/training/options.hpp>
#include <tessera/framework/training/remote_steps.hpp>
#include <tessera/framework/training/run_fingerprint.hpp>

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
  LossHandle loss;                    ///< null: none
  double weight = 1;               ///< of the loss in the total
  std::shared_ptr<LossMean> mean;  ///< of the loss, where several outputs have one
  std::vector<std::shared_ptr<Metric>> metrics;
  std::vector<std::shared_ptr<Metric>> weighted_metrics;
};

struct FitData;

/// Does what a user asked for. What it throws here alone, the other processes can read.
template <class Work>
auto reporting_failure(const Mesh& mesh, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    communicator_of(mesh).report_failure(error.what());
    throw;
  }
}

/// Shapes of data's inputs with an unknown number of rows.
Shapes batch_shapes(const DatasetHandle& data);

/// What compile() leaves in a model.
struct Model::Training {
  CompileOptions options;
  OptimizerHandle optimizer;  ///< null: none
  LayoutMap layouts;
  bool placed = false;
  bool stop = false;  ///< whether training is to end
  RowMean loss;       ///< since reset_metrics()
  FitPosition position;
  int64_t steps_begun = 0;  ///< of training, tests and predictions
  StepCapture recorded;
  /// Whether fit runs and ends where loss or gradients are infinite or no numbers.
  bool must_be_finite = false, gradients_must_be_finite = false;
  History history;
  Logs epoch_logs;          ///< of the last epoch
  bool epoch_ends = false;  ///< whether they are to go into history yet
  /// What metric_totals() gave to an epoch that goes on, until its metrics are known.
  Json restored = nullptr;
  /// Empty until the first batch, whose shapes choose some.
  std::vector<CompiledOutput> outputs;
  std::vector<std::pair<std::string, std::shared_ptr<Metric>>> metrics;
  /// Makes the steps of fit; null: this process does.
  std::shared_ptr<RemoteSteps> remote;
  /// While it does: what they have added to the metrics; `value` is a sum over rows.
  std::optional<std::vector<StepTotals::Of>> remote_sums;

  /// Makes outputs and metrics for a first batch. Throws ConfigError.
  void choose(std::vector<std::string> names, const Batch& batch,
              const std::vector<DTensor>& y_pred);
  void reset_metrics();
  /// The same, but for an epoch that goes on at position.step.
  void begin_epoch();
  /// What metric_totals() gives. Collective.
  Json totals() const;
  /// Loss and metrics by name, alphabetically. Collective.
  Logs logs() const { return logs_of(totals()); }
  Logs logs_of(const Json& totals) const;
  /// All epochs of a fit.
  void fit(Model& model, const FitData& data, const FitOptions& given,
           const CallbackList& callbacks);
  /// Runs every batch through `step`, telling the callbacks; ends early if training is to stop.
  /// `caller` begins errors. Throws Interrupted, on every process after the same step, if a signal
  /// asks one of them to leave.
  void run(const std::string& caller, Phase phase, BatchLoader& loader,
           const CallbackList& callbacks,
           const std::function<void(Examples&&, int64_t step)>& step);
  /// Does what may fail, or wish to stop, on one process alone, such as reading and writing files;
  /// then every process stops or throws in the same step. Collective.
  void do_on_all_ranks(const std::function<void()>& local);
  /// train_step(), `whole` or the stock one, by what was recorded of it where that may be.
  DTensor step(Model& model, const Batch& batch, bool whole,
               const std::function<DTensor()>& eager);
  /// Steps on a batch that count in `loss`; the batch's loss. train() throws StateError if it
  /// must_be_finite and is not.
  double train(Model& model, Examples&& examples);
  double test(Model& model, Examples&& examples);
  /// Every output, whole.
  std::vector<at::Tensor> predict(Model& model, Examples&& examples);
  /// The same of all batches.
  std::vector<at::Tensor> predict_all(Model& model, BatchLoader& loader,
                                      const CallbackList& callbacks);
  /// Runs validation or evaluation and gives its logs.
  Logs evaluate(const std::string& caller, Model& model, BatchLoader& loader,
                const CallbackList& callbacks);
  /// Gives `pass` the loader and the callbacks of evaluate or predict, once every process is known
  /// to do the same and the weights are placed. Throws ConfigError where processes differ.
  template <class Options, class Pass>
  auto over(const std::string& caller, Model& model, const DatasetHandle& data,
            const Options& given, const Pass& pass) {
    const Mesh& mesh = layouts.mesh();
    const BatchLoaderOptions batches{
        .batch_size = given.batch_size, .steps = given.steps, .layouts = layouts};
    const CallbackList callbacks(given.callbacks, model, mesh,
                                 {.steps = epoch_steps(data, batches), .verbose = given.verbose});
    if (!mesh.is_local()) {
      RunFingerprint facts = run_fingerprint(model, options, layouts, given.callbacks);
      add_batches(facts, data, given.batch_size, given.steps);
      check_same_on_all_ranks(mesh, caller, facts);
    }
    if (!placed) model.ensure_placed(batch_shapes(data));
    BatchLoader loader(data, batches);
    return pass(loader, callbacks);
  }

 private:
  void begin_remote(Model& model, const FitData& data, const FitOptions& given);
  /// Has steps made elsewhere and tells the callbacks. Throws as run().
  void run_remote(Model& model, const StepRange& range, const CallbackList& callbacks);
  int64_t run_part(Model& model, const StepRange& part, const CallbackList& callbacks);
  Logs validate(Model& model, const FitData& data, const FitOptions& given,
                const CallbackList& callbacks);
  /// The logs of the batches that `pass` runs, and what callbacks are told around them.
  Logs tested(const CallbackList& callbacks, const std::function<void()>& pass);
  void add_remote(const StepTotals& step);
  /// Takes over what is restored, to count on from.
  void begin_sums();
  Json remote_values() const;
  void restore_metrics();
  Batch prepare(Model& model, Examples&& examples);
  /// Throws StateError for a loss of the step `at` that is not finite; `parts`: its addends here.
  void check_finite(double loss, const FitPosition& at, const Blocks& parts = {}) const;
  void begin_fit(const FitOptions& given, const CallbackList& callbacks);
  /// Validates, tells callbacks that the epoch ends, and keeps what it gave.
  void end_epoch(Model& model, const FitData& data, const FitOptions& given,
                 const CallbackList& callbacks);
  /// The batch of a step, once `before` is done on every process; nothing after the last.
  std::optional<Examples> next_batch(const std::string& caller, Phase phase, BatchLoader& loader,
                                     int64_t step, const std::function<void()>& before);
  void raise_non_finite(StepStatus& own) const;
  void check_gradients(const std::string& caller, int64_t step);
  StepStatus exchange(const std::function<void(StepStatus&)>& local);
  void check_word(const std::string& caller, Phase phase, const StepStatus& word,
                  int64_t step) const;
  bool all_have_more(const std::string& caller, const StepStatus& word,
                     const std::string& form, int64_t step) const;
  void name_metrics(const std::vector<std::string>& names);
};

/// " at epoch 1, step 3", without the epoch but in training; `epoch` counts from 0.
std::string place_of(Phase phase, int64_t epoch, int64_t step);
/// What a signal ends a run with; `at` tells where, as place_of().
Interrupted interrupted(int signal, const std::string& caller, Phase phase, const std::string& at);

/// "4 rows of x (18) Double, y () Long", of the global batch: what has to be equal everywhere.
std::string form_of(const Examples& batch);
/// The same number in every process and build.
uint64_t hash_of(const std::string& text);

/// The number in a loss, reduced if it is pending. Collective.
double read_loss(const DTensor& loss);

}  // namespace tessera
